"""The connection to a server: proxies, certificates, redirects, and which environment variables count (only documented ones)."""

import contextlib
import os
import socket
import socketserver
import ssl
import sys
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from fake_server import FakeServer
from t2t_core.errors import T2TError
from t2t_core.plugins import load
from t2t_core.records import Sampling, Task
from t2t_plugins.policies.endpoint.access import account_headers

POLICIES = load().policies
QUICK = {"backoff": "0.01", "max_wait": "0.05", "timeout": "5", "attempts": "2", "give_up": "0"}
CERTIFICATE = Path(__file__).parent / "localhost.pem"  # with its key: of nothing but this test
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
KEY = "sk-planted-4f9a7c31e5d2b8"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def ask(base_url, spec="endpoint:m", **settings):
    policy = POLICIES.make(spec, base_url=base_url, **{**QUICK, **settings})
    return dict(policy.respond([Task("i", 0, "question", None, 0)], Sampling()))[0]


@contextlib.contextmanager
def raw_server(handle):
    """A TCP server that does `handle(connection)` and counts connections."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            seen.append(self.client_address)
            with contextlib.suppress(OSError):
                handle(self.request)

    seen = []
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()


def refuse_all(connection):
    connection.close()


def test_nothing_is_taken_from_the_environment_that_the_docs_do_not_name(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password out-of-netrc\n")
    odd = {
        "NETRC": str(netrc),
        "HOME": str(tmp_path),
        "OPENAI_CUSTOM_HEADERS": "X-Smuggled: yes\nAuthorization: Bearer smuggled",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_ORG_ID": "org-1234567890",
        "OPENAI_PROJECT_ID": "proj-1234567890",
        "ANTHROPIC_API_KEY": KEY,
        "AIOHTTP_CLIENT_PROXY": "http://127.0.0.1:9",
        "REQUESTS_CA_BUNDLE": "/nowhere",
        "SSLKEYLOGFILE": str(tmp_path / "keys.log"),
    }
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("T2T_API_KEY", raising=False)
    (tmp_path / ".netrc").write_text(netrc.read_text())
    with FakeServer(lambda prompt, nth: "fine") as server:
        for spec in ("endpoint:m", "openai:m"):
            assert ask(server.url, spec).text == "fine"
        host = server.url.split("/")[2]
        for request in server.requests:
            sent = dict(request["headers"])
            assert sent.pop("content-length") and sent.pop("user-agent").startswith("t2t-core/")
            assert sent == {
                "host": host,
                "accept": "application/json",
                "accept-encoding": "gzip, deflate",
                "content-type": "application/json",
                "authorization": "Bearer EMPTY",
            }


def test_the_account_goes_to_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1234567890")
    with FakeServer(lambda prompt, nth: "fine") as server:
        proxied = server.url.removesuffix("/v1")
        ask("http://api.example/v1", "openai:m", proxy=proxied, api_key_env="OPENAI_API_KEY")
        assert "openai-organization" not in server.requests[0]["headers"]
        assert account_headers("https://api.openai.com/v1") == {"OpenAI-Organization": "org-1234567890"}


@pytest.mark.parametrize("how", ["setting", "HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_is_used(how, monkeypatch):
    with FakeServer(lambda prompt, nth: "fine") as server:
        proxy = server.url.removesuffix("/v1")
        if how != "setting":
            monkeypatch.setenv(how, proxy)
        assert ask("http://model.example/v1", **({"proxy": proxy} if how == "setting" else {})).text == "fine"
        assert server.requests[0]["path"] == "http://model.example/v1/chat/completions"


def test_a_proxy_of_the_environment_is_left_out_where_it_should_be(monkeypatch):
    with raw_server(refuse_all) as (address, seen), FakeServer(lambda prompt, nth: "fine") as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://{address}")
        assert ask(server.url).text == "fine", "a server on this machine is reached directly"
        assert ask(server.url.replace("127.0.0.1", "localhost")).text == "fine"
        monkeypatch.setenv("NO_PROXY", ".example")
        assert ask("http://model.example/v1").error
        assert ask("http://other.invalid/v1", proxy="none").error
        assert not seen
        ask("http://other.invalid/v1")
        assert seen, "it is used for anything else"


def test_a_proxy_that_wants_a_password_is_named_without_it(monkeypatch):
    def handle(connection):
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with raw_server(handle) as (address, _):
        monkeypatch.setenv("ALL_PROXY", f"http://somebody:hunter22secret@{address}")
        for base_url in ("http://model.example/v1", "https://model.example/v1"):
            with pytest.raises(T2TError, match="refuses every request") as error:
                ask(base_url)
            assert "407" in error.value.cause and "hunter22secret" not in str(error.value)
        monkeypatch.setenv("ALL_PROXY", "ftp://somebody:hunter22secret@nowhere")
        with pytest.raises(T2TError, match="unknown kind") as error:
            ask("http://model.example/v1")
        assert "hunter22secret" not in str(error.value)


@pytest.mark.parametrize("password", ["hunter2", "swordfish", "sword%40fish", "a-long-password-of-many"])
def test_what_a_proxy_repeats_of_its_password_is_not_shown(password, monkeypatch):
    def repeat(connection):
        sent = next(line for line in connection.recv(65536).splitlines() if line.lower().startswith(b"proxy-authorization"))
        body = b'{"error": {"message": "you sent %s, or %s"}}' % (sent, unquote(password).encode())
        connection.sendall(b"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with raw_server(repeat) as (address, _):
        monkeypatch.setenv("HTTP_PROXY", f"http://somebody:{password}@{address}")
        said = ask("http://model.example/v1").error
    assert "you sent Proxy-Authorization: Basic [the proxy's password]" in said
    assert len(password) < 8 or unquote(password) not in said, "what is shorter may stand in any text"


@pytest.mark.parametrize("proxy", ["nowhere", "ftp://h", "http://user:pass@h:1", "socks5://"])
def test_a_proxy_that_is_none(proxy):
    with pytest.raises(T2TError, match="the setting '?proxy'? (cannot be|holds a key)") as error:
        POLICIES.make("endpoint:m,base_url=http://h/v1", proxy=proxy)
    assert "user:pass" not in str(error.value) or "no user and password" in str(error.value)


def socks(target):
    """A SOCKS5 proxy without passwords that leads everything to `target` and notes what it was asked for."""
    asked = []

    def handle(connection):
        count = connection.recv(2)[1]
        connection.recv(count)
        connection.sendall(b"\x05\x00")
        kind = connection.recv(4)[3]
        name = connection.recv(connection.recv(1)[0]).decode() if kind == 3 else socket.inet_ntoa(connection.recv(4))
        asked.append((name, int.from_bytes(connection.recv(2), "big")))
        connection.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        with socket.create_connection(target) as onward:
            back = threading.Thread(target=pump, args=(onward, connection), daemon=True)
            back.start()
            pump(connection, onward)

    def pump(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)

    return handle, asked


@pytest.mark.parametrize("how", ["setting", "ALL_PROXY"])
def test_a_socks_proxy_is_used(how, monkeypatch):
    pytest.importorskip("aiohttp_socks")
    with FakeServer(lambda prompt, nth: "fine") as server:
        url = urlsplit(server.url)
        handle, asked = socks((url.hostname, url.port))
        with raw_server(handle) as (address, _):
            if how == "ALL_PROXY":
                monkeypatch.setenv("ALL_PROXY", f"socks5h://{address}")
            response = ask("http://model.example:8000/v1", **({"proxy": f"socks5h://{address}"} if how == "setting" else {}))
            assert (response.text, asked) == ("fine", [("model.example", 8000)])
            assert server.requests[0]["path"] == "/v1/chat/completions"


def test_a_socks_proxy_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "aiohttp_socks", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://somebody:hunter22secret@127.0.0.1:9")
    with pytest.raises(T2TError, match="SOCKS proxy") as error:
        ask("http://model.example/v1")
    assert "[socks]'" in error.value.next and "hunter22secret" not in str(error.value)


@contextlib.contextmanager
def encrypted(server):
    """The same server behind TLS, with a certificate of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    plain = server._http.socket
    server._http.socket = context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
    yield server.url.replace("http://127.0.0.1", "https://localhost")


def test_a_certificate_that_does_not_hold_ends_it_at_once(monkeypatch):
    with FakeServer(lambda prompt, nth: "fine") as server, encrypted(server) as url:
        begin = time.monotonic()
        with pytest.raises(T2TError, match="refuses every request") as error:
            ask(url, backoff="30", max_wait="60")
        assert "certificate" in error.value.cause and "SSL_CERT_FILE" in error.value.next
        assert time.monotonic() - begin < 20, "it is not tried again"


def test_a_certificate_that_the_user_trusts(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    with FakeServer(lambda prompt, nth: "fine") as server, encrypted(server) as url:
        assert ask(url).text == "fine"
    assert not (tmp_path / "keys.log").exists(), "what would open the connection to others is not written"


@pytest.mark.parametrize("kind", ["missing", "pipe", "folder"])
def test_a_certificate_file_that_is_none_is_named_and_nothing_waits_for_it(kind, monkeypatch, tmp_path):
    named = tmp_path / "certificate.pem"
    if kind != "missing":
        os.mkfifo(named) if kind == "pipe" else named.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(named))
    with pytest.raises(T2TError, match="SSL_CERT_FILE names no file") as error:
        ask("https://127.0.0.1:9/v1")
    assert error.value.where == str(named)


def test_the_wrong_scheme_is_said():
    with FakeServer(lambda prompt, nth: "fine") as server, pytest.raises(T2TError, match="refuses every request") as error:
        ask(server.url.replace("http:", "https:"))
    assert "http:// instead of https://" in error.value.next


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_stays(status, monkeypatch):
    monkeypatch.setenv("T2T_API_KEY", KEY)
    with FakeServer(lambda prompt, nth: "stolen") as other:
        told = (status, {"Location": other.url + "/chat/completions?key=" + KEY, "Set-Cookie": "a=b"}, b"")
        with FakeServer(lambda prompt, nth: told) as server:
            response = ask(server.url)
            assert len(server.requests) == 1
    assert not other.requests and "which is not followed" in response.error and KEY not in response.error


def test_a_cookie_is_not_sent_back():
    with FakeServer(lambda prompt, nth: (500, {"Set-Cookie": "a=b"}, b"") if nth == 0 else "fine") as server:
        assert ask(server.url).text == "fine"
        assert "cookie" not in server.requests[1]["headers"]


def endless(first, piece):
    def handle(connection):
        connection.recv(65536)
        connection.sendall(first)
        while True:
            connection.sendall(piece)

    return handle


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000),
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"b" * 10_000),
        (b"HTTP/1.1 200 ", b"OK" * 10_000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 10_000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-A: b\r\n" * 1000),
    ],
    ids=["headers", "a header", "a reason", "continues", "chunks", "a chunk's extension", "trailers"],
)
def test_what_never_ends_is_cut_off(first, piece):
    """However a server goes on without end: one error, in bounded memory."""
    import resource

    with raw_server(endless(first, piece)) as (address, _):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        response = ask(f"http://{address}/v1", attempts="1", timeout="2", max_bytes="100000")
        assert response.error
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "KiB"


def test_a_host_that_does_not_answer_is_given_up_before_the_deadline(monkeypatch):
    from t2t_plugins.policies.endpoint import client

    monkeypatch.setattr(client, "_CONNECT_SECONDS", 0.2)
    with socket.socket() as full:  # a queue of one that nobody empties: further connections wait
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        held = [socket.create_connection(full.getsockname(), timeout=1)]
        with contextlib.suppress(OSError):
            held.append(socket.create_connection(full.getsockname(), timeout=0.2))
        begin = time.monotonic()
        response = ask(f"http://127.0.0.1:{full.getsockname()[1]}/v1", timeout="60", attempts="1")
        assert "no connection" in response.error and time.monotonic() - begin < 20
        for connection in held:
            connection.close()
