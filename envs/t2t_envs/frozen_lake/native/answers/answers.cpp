#include "answers/answers.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <span>
#include <string_view>

namespace t2t {
namespace {

constexpr char32_t nothing = 0xFFFFFFFF;  // stands for the end of the text; it is not a code point
constexpr int max_digits = 6, max_language = 20;
constexpr std::array<std::u32string_view, 2> labels = {U"agent", U"robot"};  // the words that a label may begin with

bool is_letter(char32_t c) { return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z'); }
bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_blank(char32_t c) { return c == U' ' || c == U'\t'; }
bool is_line_end(char32_t c) { return c == U'\n' || c == U'\r' || c == nothing; }
char32_t lower(char32_t c) { return c >= U'A' && c <= U'Z' ? c | 0x20 : c; }

bool before_label(char32_t c) { return is_blank(c) || c == U'-' || c == U'*'; }
bool after_label(char32_t c) { return is_blank(c) || c == U':' || c == U'*'; }
bool is_dash(char32_t c) { return c == U'-' || c == U'=' || c == U'\u2013' || c == U'\u2014'; }
bool is_arrow(char32_t c) { return c == U'>' || c == U'\u2192' || c == U'\u21d2' || c == U'\u27f6'; }
bool is_space(char32_t c) { return c == U' ' || (c >= U'\t' && c <= U'\r'); }
bool in_prose(char32_t c) {
    return is_letter(c) || is_blank(c) || (c < 0x80 && std::u32string_view(U".,:;!?'\"*-").find(c) != std::u32string_view::npos);
}

// Whether the text at `from` begins with `tag`, which is in lower case; the text may be in either case.
template <typename Char>
bool stands(const Char* from, const Char* end, std::string_view tag) {
    const auto same = [](char letter, Char c) { return static_cast<char32_t>(letter) == lower(c); };
    return static_cast<std::size_t>(end - from) >= tag.size() && std::equal(tag.begin(), tag.end(), from, same);
}

// The part of a text that counts: everything after the thoughts, or the last <answer> block in it.
template <typename Char>
struct Body {
    const Char* begin;
    const Char* end;
    bool tagged = false;

    // Returns false if thoughts have other marks than <think>, or come after the answer has begun.
    bool find(const Char* text, const Char* text_end) {
        begin = std::find_if_not(text, text_end, [](Char c) { return is_space(c); });
        end = text_end;
        if (stands(begin, end, "analysis")) return false;
        bool thought = false;
        for (const Char* at = begin; at != text_end; ++at) {
            if (*at == U'[' || static_cast<char32_t>(*at) == U'\u25c1') {
                if (*at != U'[' || stands(at, text_end, "[think") || stands(at, text_end, "[/think")) return false;
            } else if (*at == U'<' && !tag(at, text_end, thought)) {
                return false;
            } else if (lower(*at) == U'm' && (stands(at, text_end, "my thought process:") || stands(at, text_end, "my reasoning steps:"))) {
                return false;
            } else if (*at == U'&' && stands(at, text_end, "&lt;")) {
                return false;  // this may be an escaped mark of thoughts
            } else if (*at == U'~' && at + 1 != text_end && at[1] == U'~') {
                return false;  // struck-out text is left to Python
            }
        }
        return !thought;
    }

private:
    bool tag(const Char* at, const Char* text_end, bool& thought) {
        if (stands(at, text_end, "<think>")) {
            if (!thought && (tagged || std::find_if_not(begin, at, [](Char c) { return is_space(c); }) != at)) return false;
            thought = true;
        } else if (stands(at, text_end, "</think>")) {
            thought = tagged = false;
            begin = at + 8;
            end = text_end;
        } else if (!thought && stands(at, text_end, "<answer>")) {
            tagged = true;
            begin = at + 8;
            end = text_end;
        } else if (!thought && tagged && end == text_end && stands(at, text_end, "</answer>")) {
            end = at;
        } else {
            return !may_mark(at + 1, text_end);
        }
        return true;
    }
    // Whether the text after a '<' may be another mark of thoughts, or may strike something out.
    static bool may_mark(const Char* at, const Char* text_end) {
        if (at != text_end && *at == U'/') ++at;
        const bool token = at != text_end && *at == U'|';
        if (token) ++at;
        if (at == text_end || stands(at, text_end, "answer>")) return false;
        return (token ? std::u32string_view(U"bcemrs") : std::u32string_view(U"adilrstcu!")).find(lower(*at)) != std::u32string_view::npos;
    }
};

template <typename Char>
class Reader {
public:
    Reader(const Char* begin, const Char* end, bool tagged, WrittenAnswer& answer)
        : at_(begin), end_(end), tagged_(tagged), answer_(answer) {}

    bool read() {
        for (;; ++at_) {
            if (!line() || !is_line_end(here())) return false;
            if (at_ == end_) return !answer_.paths.empty() && (!restarted_ || moves());
        }
    }

private:
    char32_t here() const { return at_ == end_ ? nothing : static_cast<char32_t>(*at_); }
    template <typename Kind>
    void skip(Kind kind) {
        while (kind(here())) ++at_;
    }
    bool take(std::string_view text) {
        if (static_cast<std::size_t>(end_ - at_) < text.size()) return false;
        const bool here = std::equal(text.begin(), text.end(), at_, [](char x, Char c) { return static_cast<Char>(x) == c; });
        if (here) at_ += text.size();
        return here;
    }

    bool line() {
        skip(before_label);
        if (take("Agent ")) return path();
        return take("```") ? language() : prose();
    }
    bool path() {
        int label = 0;
        if (!is_digit(here()) || !number(label) || label > max_label) return false;
        if (broken_ && !tagged_ && answer_.labels[label]) {
            if (joined_) return false;
            answer_ = {};
            restarted_ = true;
        } else if (broken_ && !tagged_ && !answer_.paths.empty()) {
            joined_ = true;
        }
        broken_ = false;
        if (answer_.labels[label]) return false;
        answer_.labels[label] = true;
        const Char* marks = at_;
        skip(after_label);
        if (std::find(marks, at_, static_cast<Char>(':')) == at_) return false;
        const std::size_t begin = answer_.cells.size();
        bool arrows = false, again = false, led = true;
        for (;;) {
            if (!cell()) return false;
            const auto& cells = answer_.cells;
            again = again || (!led && cells.back() == cells[cells.size() - 2]);
            skip(is_blank);
            if (is_line_end(here())) break;
            led = join();
            arrows = arrows || led;
        }
        if (again && arrows) return false;
        answer_.paths.push_back({label, begin, answer_.cells.size()});
        return true;
    }
    bool cell() {
        const char* close = take("(") ? ")" : take("[") ? "]" : nullptr;
        NamedCell named;
        if (!close || !coordinate(named.row) || !take(",") || !coordinate(named.column) || !take(close)) return false;
        answer_.cells.push_back(named);
        return true;
    }
    // Reads at most one comma, dash or arrow, with blanks around it; anything else fails later as a cell. Returns whether it was
    // an arrow.
    bool join() {
        const Char* begin = at_;
        bool arrow = false;
        if (here() == U',') {
            ++at_;
        } else {
            while (at_ - begin < 3 && is_dash(here())) ++at_;
            arrow = is_arrow(here());
            if (arrow) ++at_;
        }
        skip(is_blank);
        return arrow;
    }
    bool moves() const {
        return std::any_of(answer_.paths.begin(), answer_.paths.end(), [](const auto& path) { return path.end - path.begin > 1; });
    }
    bool coordinate(int& value) {
        skip(is_blank);
        const bool read = number(value);
        skip(is_blank);
        return read;
    }
    bool number(int& value) {
        const bool negative = take("-");
        int digits = 0;
        for (; is_digit(here()); ++at_) {
            if (++digits > max_digits) return false;
            value = value * 10 + static_cast<int>(here() - U'0');
        }
        if (negative) value = -value;
        return digits > 0;
    }
    bool language() {
        const Char* begin = at_;
        skip([](char32_t c) { return c >= U'a' && c <= U'z'; });
        if (at_ - begin > max_language) return false;
        skip(is_blank);
        return true;
    }
    bool prose() {
        const Char* begin = at_;
        skip(in_prose);
        const bool words = std::any_of(begin, at_, is_letter);
        if (words && tagged_) return false;  // they may mention a wait, which is left to Python
        broken_ = broken_ || words;
        const auto same = [](Char c, char32_t letter) { return lower(c) == letter; };
        return std::none_of(labels.begin(), labels.end(), [&](std::u32string_view label) {
            return std::search(begin, at_, label.begin(), label.end(), same) != at_;
        });
    }

    const Char* at_;
    const Char* end_;
    bool tagged_;
    bool broken_ = false;  // there were words since the last path
    bool restarted_ = false, joined_ = false;  // after words, a known label came again, or a new label came
    WrittenAnswer& answer_;
};

using Path = std::span<const NamedCell>;

bool on_grid(const Question& question, NamedCell cell) {
    return cell.row >= 0 && cell.row < question.size && cell.column >= 0 && cell.column < question.size;
}
bool in_hole(const Question& question, NamedCell cell) {
    return on_grid(question, cell) && question.holes[cell.row * question.size + cell.column];
}
bool is_step(NamedCell before, NamedCell after) {
    return std::abs(before.row - after.row) + std::abs(before.column - after.column) <= 1;
}

// Whether two agents are ever on the same cell or swap cells. Each agent stays on its last cell.
bool meet(Path one, Path other) {
    if (one.size() > other.size()) std::swap(one, other);
    for (std::size_t t = 0; t < other.size(); ++t) {
        if (other[t] == (t < one.size() ? one[t] : one.back())) return true;
        if (t > 0 && t < one.size() && one[t] == other[t - 1] && other[t] == one[t - 1]) return true;
    }
    return false;
}

// The step from which a path stays on its last cell.
std::int64_t arrival(Path path) {
    std::size_t step = path.size() - 1;
    while (step > 0 && path[step - 1] == path.back()) --step;
    return static_cast<std::int64_t>(step);
}

}  // namespace

template <typename Char>
bool read_answer(const Char* text, std::size_t length, WrittenAnswer& answer) {
    Body<Char> body;
    return body.find(text, text + length) && Reader<Char>(body.begin, body.end, body.tagged, answer).read();
}

template bool read_answer(const std::uint8_t*, std::size_t, WrittenAnswer&);
template bool read_answer(const std::uint16_t*, std::size_t, WrittenAnswer&);
template bool read_answer(const std::uint32_t*, std::size_t, WrittenAnswer&);

Judgement judge(const Question& question, const WrittenAnswer& answer) {
    std::array<Path, Question::max_agents> paths;
    int present = 0;
    bool start = true, bounds = true, holes = true, legal = true, apart = true, goal = true;
    for (int agent = 0; agent < question.agents; ++agent) {
        if (!answer.labels[agent]) continue;
        const auto of_agent = [&](const auto& written) { return written.label == agent; };
        const auto found = std::find_if(answer.paths.begin(), answer.paths.end(), of_agent);
        const Path path(answer.cells.data() + found->begin, found->end - found->begin);
        start = start && path.front() == question.starts[agent];
        goal = goal && path.back() == question.goals[agent];
        bounds = bounds && std::all_of(path.begin(), path.end(), [&](NamedCell c) { return on_grid(question, c); });
        holes = holes && std::none_of(path.begin(), path.end(), [&](NamedCell c) { return in_hole(question, c); });
        legal = legal && std::adjacent_find(path.begin(), path.end(), std::not_fn(is_step)) == path.end();
        apart = apart && std::none_of(paths.begin(), paths.begin() + present, [&](Path other) { return meet(path, other); });
        paths[present++] = path;
    }
    const bool count = present == question.agents && answer.paths.size() == static_cast<std::size_t>(present);
    Judgement result;
    const bool all[] = {true, count, start, bounds, holes, legal, apart, goal};
    for (int i = 0; i < 8; ++i) result.checks |= static_cast<unsigned>(all[i] && (i < 2 || present > 0)) << i;
    if (!result.valid()) return result;
    result.makespan = result.sum_of_costs = 0;
    for (int agent = 0; agent < present; ++agent) {
        const std::int64_t step = arrival(paths[agent]);
        result.makespan = std::max(result.makespan, step);
        result.sum_of_costs += step;
    }
    return result;
}

}  // namespace t2t
