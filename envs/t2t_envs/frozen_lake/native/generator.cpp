#include "generator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "canonical.hpp"
#include "generator_evaluator.hpp"

namespace t2t {

std::unique_ptr<Evaluator> make_evaluator(const GridCell& cell) {
    const int bits = cell.size * (cell.size + 1);
    if (bits <= 64) return std::make_unique<BoardEvaluator<1>>(cell);
    if (bits <= 128) return std::make_unique<BoardEvaluator<2>>(cell);
    return std::make_unique<BoardEvaluator<17>>(cell);  // up to 32 x 33
}

namespace {

// Calls `beat` about ten times a second; looks at the clock only after every 64 pieces of work.
class Pulse {
public:
    explicit Pulse(const std::function<void()>& beat) : beat_(beat) {}
    void operator()(std::uint64_t pieces) {
        pieces_ += pieces;
        if (pieces_ < 64) return;
        pieces_ = 0;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        beat_();
    }

private:
    const std::function<void()>& beat_;
    std::uint64_t pieces_ = 0;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// What one candidate came to. The instance is there, and `complete` (the other objective is decided too, where asked for)
// means something, only if its kind was still wanted when its block began.
struct Candidate {
    Kind kind = Kind::rejected;
    bool complete = true;
    LabelledInstance instance;
};

class Sampling {
public:
    Sampling(const SampleRequest& request, const std::function<void()>& heartbeat)
        : request_(request), pulse_(heartbeat), stream_(request.key), symmetries_(request.cell.size) {
        for (int i = 0; i < request.threads; ++i) evaluators_.push_back(make_evaluator(request.cell));
    }

    Sample run() {
        while (wanted(0) || wanted(1)) {
            if (sample_.drawn - last_ >= request_.stall) {
                sample_.stalled = true;
                break;
            }
            evaluate_block();
            accept_block();
        }
        return std::move(sample_);
    }

private:
    bool wanted(int kind) const {
        return taken_[kind] < request_.quota[kind] && taken_[0] + taken_[1] < request_.total;
    }

    // Candidates are independent, so blocks only decide how much is drawn in vain; with one thread nothing is.
    void evaluate_block() {
        const auto threads = static_cast<std::uint64_t>(request_.threads);
        const std::uint64_t size =
            threads == 1 ? 1 : std::clamp<std::uint64_t>(sample_.drawn / 4, 64 * threads, 8192 * threads);
        block_.resize(size);
        const bool open[2] = {wanted(0), wanted(1)};
        if (threads == 1) {
            evaluate(*evaluators_[0], 0, 1, open);
        } else {
            evaluate_in_threads(open);
        }
        pulse_(size);
    }

    void evaluate(Evaluator& evaluator, std::size_t from, std::size_t to, const bool open[2]) {
        for (std::size_t i = from; i < to; ++i) {
            Candidate& candidate = block_[i];
            candidate.kind = evaluator.draw(stream_, sample_.drawn + i);
            const int kind = static_cast<int>(candidate.kind);
            if (kind < 2 && open[kind]) candidate.complete = evaluator.read(candidate.instance, request_.both);
        }
    }

    void evaluate_in_threads(const bool open[2]) {
        constexpr std::size_t chunk = 32;
        std::atomic<std::size_t> next{0};
        std::mutex mutex;
        std::exception_ptr error;
        const auto work = [&](Evaluator& evaluator) {
            try {
                for (std::size_t from; (from = next.fetch_add(chunk)) < block_.size();) {
                    evaluate(evaluator, from, std::min(from + chunk, block_.size()), open);
                }
            } catch (...) {
                const std::lock_guard lock(mutex);
                error = std::current_exception();
                next = block_.size();
            }
        };
        {
            std::vector<std::jthread> others;
            for (std::size_t i = 1; i < evaluators_.size(); ++i) {
                others.emplace_back([&, i] { work(*evaluators_[i]); });
            }
            work(*evaluators_[0]);
        }
        if (error) std::rethrow_exception(error);
    }

    void accept_block() {
        for (Candidate& candidate : block_) {
            if (!wanted(0) && !wanted(1)) return;
            if (sample_.drawn - last_ >= request_.stall) return;
            ++sample_.drawn;
            if (candidate.kind == Kind::undecided) ++sample_.undecided;
            const int kind = static_cast<int>(candidate.kind);
            if (kind >= 2 || !wanted(kind)) continue;
            if (!candidate.complete) ++sample_.undecided;
            if (!candidate.complete || !is_new(candidate.instance)) continue;
            ++taken_[kind];
            last_ = sample_.drawn;
            sample_.instances.push_back(candidate.instance);
        }
    }

    bool is_new(const LabelledInstance& instance) {
        std::string form;
        if (request_.one_per_form || !request_.exclude.empty()) {
            form = canonical_form(symmetries_, instance.holes, instance.starts, instance.goals);
            if (request_.exclude.contains(form)) return false;
        }
        if (!request_.distinct) return true;
        if (!request_.one_per_form) form = variant_form(symmetries_, instance.holes, instance.starts, instance.goals);
        return seen_.insert(std::move(form)).second;
    }

    const SampleRequest& request_;
    Pulse pulse_;
    Stream stream_;
    Symmetries symmetries_;
    std::vector<std::unique_ptr<Evaluator>> evaluators_;
    std::vector<Candidate> block_;
    std::unordered_set<std::string> seen_;
    std::int64_t taken_[2] = {0, 0};
    std::uint64_t last_ = 0;
    Sample sample_;
};

// Lists every canonical form of a cell in rising order: hole sets that are the least of their images, and on each of them
// the agents that are the least under the symmetries that leave the holes alone.
class Enumeration {
public:
    Enumeration(const GridCell& cell, int list_kind, const std::function<void()>& heartbeat)
        : cell_(cell), list_kind_(list_kind), pulse_(heartbeat), symmetries_(cell.size),
          evaluator_(make_evaluator(cell)), used_as_goal_(static_cast<std::size_t>(cell.size) * cell.size) {}

    Forms run() {
        choose_holes(0);
        return std::move(forms_);
    }

private:
    int cells() const { return cell_.size * cell_.size; }

    void choose_holes(int from) {
        if (static_cast<int>(holes_.size()) == cell_.holes) return on_holes();
        const int missing = cell_.holes - static_cast<int>(holes_.size());
        for (int c = from; c <= cells() - missing; ++c) {
            holes_.push_back(static_cast<Cell>(c));
            choose_holes(c + 1);
            holes_.pop_back();
        }
    }

    void on_holes() {
        stabilizer_.clear();
        std::vector<Cell> moved;
        for (int s = 1; s < 8; ++s) {
            symmetries_.sorted_image(s, holes_, moved);
            if (moved < holes_) return;
            if (moved == holes_) stabilizer_.push_back(s);
        }
        evaluator_->set_holes(holes_);
        choose_agents(0);
    }

    void choose_agents(int from) {
        if (static_cast<int>(starts_.size()) == cell_.agents) return on_agents();
        for (int start = from; start < cells(); ++start) {
            for (int goal = 0; goal < cells(); ++goal) {
                const auto s = static_cast<Cell>(start), g = static_cast<Cell>(goal);
                if (used_as_goal_[goal] || !evaluator_->connected(s, g)) continue;
                used_as_goal_[goal] = 1;
                starts_.push_back(s);
                goals_.push_back(g);
                choose_agents(start + 1);
                starts_.pop_back();
                goals_.pop_back();
                used_as_goal_[goal] = 0;
            }
        }
    }

    void on_agents() {
        pulse_(1);
        sorted_agents(symmetries_, 0, starts_, goals_, agents_);
        for (const int s : stabilizer_) {
            sorted_agents(symmetries_, s, starts_, goals_, moved_agents_);
            if (moved_agents_ < agents_) return;
        }
        const Kind kind = evaluator_->label(starts_, goals_);
        if (kind == Kind::undecided) ++forms_.undecided;
        if (kind == Kind::undecided || kind == Kind::rejected) return;
        ++forms_.count[static_cast<int>(kind)];
        if (static_cast<int>(kind) == list_kind_) forms_.listed.push_back(form_bytes(cell_.size, holes_, agents_));
    }

    const GridCell cell_;
    const int list_kind_;
    Pulse pulse_;
    Symmetries symmetries_;
    std::unique_ptr<Evaluator> evaluator_;
    std::vector<Cell> holes_, starts_, goals_;
    std::vector<std::uint8_t> used_as_goal_;
    std::vector<int> stabilizer_;
    std::vector<std::pair<Cell, Cell>> agents_, moved_agents_;
    Forms forms_;
};

}  // namespace

Sample sample_cell(const SampleRequest& request, const std::function<void()>& heartbeat) {
    return Sampling(request, heartbeat).run();
}

Forms enumerate_cell(const GridCell& cell, int list_kind, const std::function<void()>& heartbeat) {
    return Enumeration(cell, list_kind, heartbeat).run();
}

}  // namespace t2t
