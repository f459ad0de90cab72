"""Replies as real servers send them, including odd ones: name -> (status, headers, body) for a given answer.

Shapes are from the services' documentation and from public bug reports: vLLM, SGLang, llama.cpp, Ollama, LiteLLM, OpenRouter,
Azure, Gemini, DeepSeek, Moonshot, Mistral, Anthropic, Alibaba, z.AI, Groq, FastAPI, Cloudflare.
"""

import json

GOOD = "<answer>\nAgent 0: (0,0) -> (0,1)\n</answer>"
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
ZERO = dict.fromkeys(USAGE, 0)
FILTER = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"jailbreak": {"filtered": True, "detected": True}}}


def completion(content=GOOD, finish="stop", usage=USAGE, message=None, **more):
    message = {"role": "assistant", "content": content, **(message or {})}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "model": "m-2026", "choices": [choice], "usage": usage, **more}


def ok(value, **headers):
    return 200, {"content-type": "application/json", **headers}, json.dumps(value).encode()


def error(status, value, **headers):
    return (
        status,
        {"content-type": "application/json", **headers},
        (value if isinstance(value, str) else json.dumps(value)).encode(),
    )


def choice(**fields):
    return completion(choices=[{"index": 0, **fields}])


def events(*values, end="data: [DONE]\n\n"):
    text = "".join(f"data: {json.dumps(v)}\n\n" for v in values) + end
    return 200, {"content-type": "text/event-stream"}, text.encode()


def delta(finish=None, **fields):
    return {"id": "x", "model": "m-2026", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}], "usage": None}


def openai_error(message, code=None, param=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


NO_TEMPERATURE = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
USE_OTHER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
VLLM_LONG = "This model's maximum context length is 2048 tokens. However, you requested 4396 tokens (300 in the messages)."
LLAMA_LONG = "the request exceeds the available context size. try increasing the context size or enable context shift"
AZURE = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
FLAGGED = {"reasons": ["violence"], "flagged_input": "a lake", "provider_name": "OpenAI"}
RETRY_INFO = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
EXTRA = [
    {"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted", "input": 9}
]

# name: (reply, kind, text of the answer or a piece of the error, (prompt, completion tokens))
KNOWN = (100, 20)
NONE = (None, None)
REPLIES = {
    # answers
    "plain": (ok(completion()), "answer", GOOD, KNOWN),
    "leading blank lines (DeepSeek while it waits)": ((200, {}, b"\n\n\n" + ok(completion())[2]), "answer", GOOD, KNOWN),
    "finish reason null": (ok(completion(finish=None)), "answer", GOOD, KNOWN),
    "stop_reason is a token (vLLM)": (
        ok(choice(message={"content": GOOD}, finish_reason="stop", stop_reason=151645)),
        "answer",
        GOOD,
        KNOWN,
    ),
    "stop_reason is a stop text, which may be called anything (vLLM)": (
        ok(choice(message={"content": GOOD}, finish_reason="stop", stop_reason="length")),
        "answer",
        GOOD,
        KNOWN,
    ),
    "finish reason nobody knows": (ok(completion(finish="because")), "answer", GOOD, KNOWN),
    "eos": (ok(completion(finish="eos")), "answer", GOOD, KNOWN),
    "STOP (Gemini)": (ok(completion(finish="STOP")), "answer", GOOD, KNOWN),
    "finish reason as an object (SGLang)": (ok(completion(finish={"type": "stop", "matched": 2})), "answer", GOOD, KNOWN),
    "no usage": (ok(completion(usage=None)), "answer", GOOD, NONE),
    "zero usage": (ok(completion(usage=ZERO)), "answer", GOOD, NONE),
    "zero completion tokens": (
        ok(completion(usage={**USAGE, "completion_tokens": 0, "total_tokens": 100})),
        "answer",
        GOOD,
        (100, None),
    ),
    "usage in other words": (ok(completion(usage={"input_tokens": 100, "output_tokens": 20})), "answer", GOOD, KNOWN),
    "NaN among the log-probabilities": (ok(completion(logprobs=float("nan"))), "answer", GOOD, KNOWN),
    "a number of a thousand digits": (
        (200, {}, ok(completion())[2].replace(b'"index": 0', b'"index": ' + b"9" * 1000)),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a key twice": ((200, {}, ok(completion())[2].replace(b'"object"', b'"id": "y", "object"')), "answer", GOOD, KNOWN),
    "UTF-16": ((200, {}, json.dumps(completion()).encode("utf-16")), "answer", GOOD, KNOWN),
    "UTF-8 with a mark": ((200, {}, b"\xef\xbb\xbf" + ok(completion())[2]), "answer", GOOD, KNOWN),
    "Latin-1, unsaid": (
        (200, {}, json.dumps(completion(GOOD + " é"), ensure_ascii=False).encode("latin-1")),
        "answer",
        GOOD + " \ufffd",
        KNOWN,
    ),
    "Latin-1, said": (
        (
            200,
            {"content-type": "application/json; charset=ISO-8859-1"},
            json.dumps(completion(GOOD + " é"), ensure_ascii=False).encode("latin-1"),
        ),
        "answer",
        GOOD + " é",
        KNOWN,
    ),
    "text in parts": (ok(completion([{"type": "text", "text": GOOD}])), "answer", GOOD, KNOWN),
    "output_text": (ok(completion([{"type": "output_text", "text": GOOD}])), "answer", GOOD, KNOWN),
    "thoughts among the parts (Mistral)": (
        ok(completion([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": GOOD}])),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a stream nobody asked for": (
        events(
            delta(role="assistant"),
            delta(content=GOOD[:9]),
            delta(content=GOOD[9:]),
            delta("stop"),
            {"choices": [], "usage": USAGE},
        ),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a whole completion as one event": (events(completion()), "answer", GOOD, KNOWN),
    "a stream with comments (OpenRouter)": (
        (200, {"content-type": "text/event-stream"}, b": OPENROUTER PROCESSING\n\n" + events(completion())[2]),
        "answer",
        GOOD,
        KNOWN,
    ),
    "an error beside a choice, null": (ok(completion(error=None)), "answer", GOOD, KNOWN),
    "usage as texts": (ok(completion(usage={name: str(n) for name, n in USAGE.items()})), "answer", GOOD, KNOWN),
    "usage as decimals": (ok(completion(usage={name: float(n) for name, n in USAGE.items()})), "answer", GOOD, KNOWN),
    "usage as nonsense": (
        ok(completion(usage={"prompt_tokens": "a hundred", "completion_tokens": 20.5, "total_tokens": [120]})),
        "answer",
        GOOD,
        NONE,
    ),
    "usage as nonsense too": (ok(completion(usage={"prompt_tokens": -100, "completion_tokens": True})), "answer", GOOD, NONE),
    "the second choice first": (
        ok(completion(choices=[{"index": 1, "message": {"content": "no"}}, completion()["choices"][0]])),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a message that is a text": (ok(choice(message=GOOD, finish_reason="stop")), "answer", GOOD, KNOWN),
    "a plain completion's text": (ok(choice(text=GOOD, finish_reason="stop")), "answer", GOOD, KNOWN),
    "a tool nobody offered": (
        ok(completion(None, "tool_calls", message={"tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]})),
        "answer",
        "",
        KNOWN,
    ),
    "text in a part as an object (the Assistants API)": (
        ok(completion([{"type": "text", "text": {"value": GOOD, "annotations": []}}])),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a part without a type (Gemini's own)": (ok(completion([{"text": GOOD}])), "answer", GOOD, KNOWN),
    "parts that hold no text beside one that does (Mistral)": (
        ok(completion([None, {"type": "text", "text": GOOD}, {"type": "reference", "reference_ids": [1]}])),
        "answer",
        GOOD,
        KNOWN,
    ),
    "a refusal that is none": (ok(completion(message={"refusal": False})), "answer", GOOD, KNOWN),
    "a stream of two choices": (
        events(
            {"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": GOOD[:9]}}], "usage": USAGE},
            {"choices": [{"index": 0, "delta": {"content": GOOD[9:]}}]},
            {"model": "m-2026", "choices": [{"index": 1, "delta": {"content": " no"}, "finish_reason": "length"}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ),
        "answer",
        GOOD,
        KNOWN,
    ),
    "usage in the choice (Moonshot)": (
        ok(completion(usage=None, choices=[{**completion()["choices"][0], "usage": USAGE}])),
        "answer",
        GOOD,
        KNOWN,
    ),
    "usage in a stream's choice (Moonshot)": (
        events(delta(content=GOOD), {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}),
        "answer",
        GOOD,
        KNOWN,
    ),
    "usage among a service's own fields (Groq)": (ok(completion(usage=None, x_groq={"usage": USAGE})), "answer", GOOD, KNOWN),
    # empty answers
    "a picture and no text": (ok(completion([{"type": "image_url", "image_url": {"url": "x"}}])), "empty", "", KNOWN),
    "no parts": (ok(completion([])), "empty", "", KNOWN),
    "content null": (ok(completion(None)), "empty", "", KNOWN),
    "content empty": (ok(completion("")), "empty", "", KNOWN),
    "hidden reasoning, content null": (ok(completion(None, message={"reasoning_content": "hm"})), "empty", "", KNOWN),
    "hidden reasoning, content empty": (ok(completion("", message={"reasoning": "hm"})), "empty", "", KNOWN),
    "hidden reasoning, zero usage": (ok(completion(None, "stop", ZERO, {"reasoning": "hm"})), "empty", "", NONE),
    "hidden reasoning, no tokens of an answer": (
        ok(completion("", usage={"prompt_tokens": 50, "completion_tokens": 0, "total_tokens": 4146})),
        "empty",
        "",
        (50, 4096),
    ),
    "message null, but ended": (ok(choice(message=None, finish_reason="stop")), "empty", "", KNOWN),
    "content absent": (ok(choice(message={"role": "assistant"}, finish_reason="stop")), "empty", "", KNOWN),
    # cut answers
    "length": (ok(completion(GOOD[:20], "length")), "cut", GOOD[:20], KNOWN),
    "stop_reason max_tokens (a gateway to Anthropic)": (
        ok(choice(message={"content": GOOD[:20]}, finish_reason=None, stop_reason="max_tokens")),
        "cut",
        GOOD[:20],
        KNOWN,
    ),
    "done_reason length (a gateway to Ollama)": (
        ok({**choice(message={"content": ""}), "done_reason": "length"}),
        "cut",
        "",
        KNOWN,
    ),
    "length before the answer": (ok(completion(None, "length", ZERO, {"reasoning_content": "hm"})), "cut", "", NONE),
    "length, message null": (ok(choice(message=None, finish_reason="length")), "cut", "", KNOWN),
    "MAX_TOKENS, no message (Gemini)": (ok(choice(finish_reason="MAX_TOKENS")), "cut", "", KNOWN),
    "model_length (Mistral)": (ok(completion(GOOD[:20], "model_length")), "cut", GOOD[:20], KNOWN),
    "model_context_window_exceeded (z.AI)": (ok(completion("", "model_context_window_exceeded")), "cut", "", KNOWN),
    # refusals
    "refusal": (ok(completion(None, message={"refusal": "I can't."})), "refusal", "I can't.", KNOWN),
    "refusal beside an empty text": (ok(completion("", message={"refusal": "I can't."})), "refusal", "I can't.", KNOWN),
    "refusal in a part": (ok(completion([{"type": "refusal", "refusal": "I can't."}])), "refusal", "I can't.", KNOWN),
    "content_filter": (ok(completion("", "content_filter")), "refusal", "", KNOWN),
    "content_filter with details (Gemini)": (ok(completion(None, "content_filter: PROHIBITED_CONTENT")), "refusal", "", KNOWN),
    "sensitive (z.AI)": (ok(completion("", "sensitive")), "refusal", "", KNOWN),
    "content_filter, message null": (ok(choice(message=None, finish_reason="content_filter")), "refusal", "", KNOWN),
    "400 content_filter (Azure)": (
        error(400, {"error": {"code": "content_filter", "message": AZURE, "innererror": FILTER}}),
        "refusal",
        "",
        NONE,
    ),
    "400 data_inspection_failed (Alibaba)": (
        error(400, {"error": {"code": "data_inspection_failed", "message": "Input data may contain inappropriate content."}}),
        "refusal",
        "",
        NONE,
    ),
    "400 Content Exists Risk (DeepSeek)": (error(400, openai_error("Content Exists Risk")), "refusal", "", NONE),
    "400 through LiteLLM": (
        error(400, openai_error("litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException")),
        "refusal",
        "",
        NONE,
    ),
    "403 flagged (OpenRouter)": (
        error(
            403, {"error": {"code": 403, "message": "openai requires moderation. Your input was flagged", "metadata": FLAGGED}}
        ),
        "refusal",
        "",
        NONE,
    ),
    "a content filter inside a 200": (ok({"error": {"code": 400, "message": "content_filter"}}), "refusal", "", NONE),
    # aborted
    "abort": (ok(completion(GOOD[:40], "abort")), "aborted", "'abort'", KNOWN),
    "abort as an object (SGLang)": (ok(completion(GOOD[:40], {"type": "abort"})), "aborted", "'abort'", KNOWN),
    "cancelled": (ok(completion("", "cancelled")), "aborted", "'cancelled'", KNOWN),
    # faults worth another try
    "abort with a status (SGLang)": (
        ok(completion("", {"type": "abort", "message": "the prefill died", "status_code": 503})),
        "passing",
        "HTTP 503: the prefill",
        KNOWN,
    ),
    "insufficient_system_resource (DeepSeek)": (
        ok(completion(GOOD[:9], "insufficient_system_resource")),
        "passing",
        "broke",
        KNOWN,
    ),
    "network_error (z.AI)": (ok(completion("", "network_error")), "passing", "network_error", KNOWN),
    "no choices, but billed": (
        ok(completion(choices=[], usage={"prompt_tokens": 50, "completion_tokens": 0, "total_tokens": 4146})),
        "passing",
        "no choices",
        (50, 4096),
    ),
    "choices null": (ok(completion(choices=None)), "passing", "no choices", KNOWN),
    "message null, not ended": (ok(choice(message=None)), "passing", "neither message nor finish reason", KNOWN),
    "nothing at all": (ok(completion(None, None)), "passing", "no answer and no finish reason", KNOWN),
    "MALFORMED_FUNCTION_CALL (Gemini)": (ok(completion(None, "MALFORMED_FUNCTION_CALL")), "passing", "MALFORMED", KNOWN),
    "a refusal as an object": (ok(completion(None, message={"refusal": {"why": "no"}})), "passing", "no message", KNOWN),
    "parts within parts": (ok(completion([[{"type": "text", "text": GOOD}]])), "passing", "no message", KNOWN),
    "text in a part of a kind that nobody knows": (
        ok(completion([{"type": "markdown", "text": GOOD}])),
        "passing",
        "no message",
        KNOWN,
    ),
    "Anthropic's own API": (
        ok({"type": "message", "role": "assistant", "content": [{"type": "text", "text": GOOD}], "stop_reason": "end_turn"}),
        "passing",
        "no choices; try the address",
        NONE,
    ),
    "Ollama's own API": (ok({"model": "m", "message": {"role": "assistant", "content": GOOD}}), "passing", "/v1", NONE),
    "202": ((202, {}, b'{"id": "job", "status": "queued"}'), "passing", "no choices", NONE),
    "204": ((204, {}, b""), "passing", "an empty body with status 204", NONE),
    "content as an object": (ok(completion({"text": GOOD})), "passing", "no message", KNOWN),
    "content as a number": (ok(completion(5)), "passing", "no message", KNOWN),
    "content as no": (ok(completion(False)), "passing", "no message", KNOWN),
    "a message that is a list": (ok(choice(message=[GOOD], finish_reason="stop")), "passing", "no message", KNOWN),
    "error in a choice (OpenRouter)": (
        ok(completion(choices=[{"error": {"code": 502, "message": "Provider disconnected"}, "message": {"content": "Ag"}}])),
        "passing",
        "HTTP 502: Provider disconnected",
        KNOWN,
    ),
    "error inside a 200": (
        ok({"error": {"code": "server_error", "message": "oops"}}),
        "passing",
        "an error with status 200: oops",
        NONE,
    ),
    "an error as a text": (ok({"error": "out of memory"}), "passing", "out of memory", NONE),
    "an empty stream": (events(), "passing", "no JSON object", NONE),
    "a stream that breaks": (events(delta(content=GOOD[:9]), end=""), "aborted", "'abort'", NONE),
    "a stream that fails": (
        events(delta(content=GOOD[:9]), {"error": {"code": 500, "message": "oops"}}),
        "passing",
        "HTTP 500: oops",
        NONE,
    ),
    "HTML": (error(200, "<!DOCTYPE html><html>Welcome</html>"), "passing", "HTML page", NONE),
    "503 HTML": (error(503, "<html>x</html>"), "passing", "HTTP 503: <html>", NONE),
    "503 loading (llama.cpp)": (
        error(503, openai_error("Loading model", 503, kind="unavailable_error")),
        "passing",
        "Loading",
        NONE,
    ),
    "524 (Cloudflare)": (error(524, "a timeout occurred"), "passing", "HTTP 524", NONE),
    "529 (Anthropic)": (
        error(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "passing",
        "Overloaded",
        NONE,
    ),
    "498 (Groq)": (error(498, openai_error("capacity exceeded")), "passing", "HTTP 498", NONE),
    "429 (Gemini, in a list)": (
        error(429, [{"error": {"code": 429, "message": "Quota", "details": RETRY_INFO}}]),
        "passing",
        "HTTP 429: Quota",
        NONE,
    ),
    # faults that another try can't mend, of one question
    "400 too long (vLLM)": (
        error(400, {"object": "error", "message": VLLM_LONG, "code": 400}),
        "lasting",
        "--max-model-len",
        NONE,
    ),
    "500 too long (llama.cpp)": (
        error(500, {"error": {"code": 500, "message": LLAMA_LONG, "type": "exceed_context_size_error"}}),
        "lasting",
        "max_tokens=",
        NONE,
    ),
    "context_length_exceeded (OpenAI)": (
        error(400, openai_error("too many", "context_length_exceeded")),
        "lasting",
        "max_tokens=",
        NONE,
    ),
    "too long, inside a 200": (ok({"error": {"code": 400, "message": LLAMA_LONG}}), "lasting", "max_tokens=", NONE),
    "abort, too long (SGLang)": (
        ok(completion("", {"type": "abort", "message": "Input is too long: 9 > 8", "status_code": 400})),
        "lasting",
        "max_tokens=",
        KNOWN,
    ),
    "400 without a reason": (error(400, ""), "lasting", "HTTP 400", NONE),
    "413": (error(413, "Payload Too Large"), "lasting", "HTTP 413: Payload", NONE),
    "308": (
        (308, {"location": "https://elsewhere.example/v1"}, b""),
        "lasting",
        "https://elsewhere.example/v1, which is not",
        NONE,
    ),
    # of every question
    "404 no model": (
        error(404, openai_error("The model `x` does not exist.", "model_not_found")),
        "forbidden",
        "does not exist",
        NONE,
    ),
    "404 plain": (error(404, "404 page not found"), "forbidden", "404 page not found", NONE),
    "403 forbidden": (error(403, openai_error("Country not supported", "unsupported_country")), "forbidden", "HTTP 403", NONE),
    "403, account flagged": (error(403, openai_error("Your account has been flagged")), "forbidden", "HTTP 403", NONE),
    "405": (error(405, {"detail": "Method Not Allowed"}), "forbidden", "Method Not Allowed", NONE),
    "401": (error(401, openai_error("Incorrect API key provided", "invalid_api_key")), "stop", "HTTP 401", NONE),
    "402 (DeepSeek)": (error(402, openai_error("Insufficient Balance")), "stop", "HTTP 402", NONE),
    "429 insufficient_quota (OpenAI)": (error(429, openai_error("quota", "insufficient_quota")), "stop", "HTTP 429", NONE),
    "400 no credit (Anthropic)": (error(400, openai_error("Your credit balance is too low")), "stop", "HTTP 400", NONE),
    "no credit inside a 200": (ok({"error": {"code": 402, "message": "no credit"}}), "stop", "HTTP 402: no credit", NONE),
    "temperature (OpenAI)": (
        error(400, openai_error(NO_TEMPERATURE, "unsupported_value", "temperature")),
        "stop",
        "temperature=none",
        NONE,
    ),
    "temperature (Moonshot)": (
        error(400, openai_error("invalid temperature: only 1 is allowed for this model")),
        "stop",
        "temperature=none",
        NONE,
    ),
    "temperature (LiteLLM)": (
        error(
            400, openai_error("litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.0. Only temperature=1")
        ),
        "stop",
        "temperature=none",
        NONE,
    ),
    "max_tokens (OpenAI)": (
        error(400, openai_error(USE_OTHER, "unsupported_parameter", "max_tokens")),
        "stop",
        "limit_field=max_completion",
        NONE,
    ),
    "max_completion_tokens (FastAPI)": (error(422, {"detail": EXTRA}), "stop", "limit_field=max_tokens", NONE),
    "max_tokens too large (DeepSeek)": (
        error(400, openai_error("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]")),
        "stop",
        "smaller max_tokens=",
        NONE,
    ),
    "max_tokens too large (Anthropic)": (
        error(400, openai_error("max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens")),
        "stop",
        "smaller max_tokens=",
        NONE,
    ),
}
