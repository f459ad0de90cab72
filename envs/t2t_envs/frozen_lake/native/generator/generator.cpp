#include "generator/generator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <utility>

#include "solver/canonical.hpp"
#include "generator/generator_evaluator.hpp"

namespace t2t {

std::unique_ptr<Evaluator> make_evaluator(const GridCell& cell) {
    const int bits = cell.size * (cell.size + 1);
    if (bits <= 64) return std::make_unique<BoardEvaluator<1>>(cell);
    if (bits <= 128) return std::make_unique<BoardEvaluator<2>>(cell);
    return std::make_unique<BoardEvaluator<17>>(cell);  // up to 32 x 33
}

namespace {

// The result of one candidate. `instance` and `complete` (whether the other objective is decided too, if it was asked for) are
// meaningful only if instances of its kind were still needed when its chunk began.
struct Candidate {
    Kind kind = Kind::rejected;
    bool complete = true;
    std::uint64_t steps = 0;
    LabelledInstance instance;
};

// A ring of the chunks of candidates that are being evaluated.
class ChunkQueue {
public:
    static constexpr std::size_t length = 32;

    explicit ChunkQueue(std::size_t ahead) : chunks_(ahead, std::vector<Candidate>(length)), ready_(ahead, false) {}

    std::vector<Candidate>& chunk(std::uint64_t number) { return chunks_[number % chunks_.size()]; }
    // Takes the next chunk to evaluate. Returns false if it would be too far ahead.
    bool take(std::uint64_t& number) {
        const std::lock_guard lock(mutex_);
        if (next_ >= released_ + chunks_.size()) return false;
        number = next_++;
        return true;
    }
    // The same, but waits for a chunk. Returns false if the work is over.
    bool wait_and_take(std::uint64_t& number) {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return over_ || next_ < released_ + chunks_.size(); });
        if (over_) return false;
        number = next_++;
        return true;
    }
    void finish(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        ready_[number % ready_.size()] = true;
        done_.notify_one();
    }
    bool is_ready(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        return ready_[number % ready_.size()];
    }
    // Waits only briefly, so that the caller can do other things in between.
    void wait_for_ready(std::uint64_t number) {
        std::unique_lock lock(mutex_);
        done_.wait_for(lock, std::chrono::milliseconds(50), [&] { return ready_[number % ready_.size()]; });
    }
    // To be called when the oldest chunk has been accepted: its place becomes free.
    void release(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        ready_[number % ready_.size()] = false;
        released_ = number + 1;
        room_.notify_one();
    }
    void stop() {
        const std::lock_guard lock(mutex_);
        over_ = true;
        room_.notify_all();
    }
    bool is_over() const { return over_; }
    // Which kinds are still needed. A kind that is no longer needed never is again.
    void set_open(bool first, bool second) { open_[0] = first, open_[1] = second; }
    void read_open(bool open[2]) const { open[0] = open_[0], open[1] = open_[1]; }

private:
    std::vector<std::vector<Candidate>> chunks_;
    std::vector<bool> ready_;
    std::uint64_t next_ = 0, released_ = 0;
    std::atomic<bool> open_[2] = {true, true};
    std::atomic<bool> over_ = false;
    std::mutex mutex_;
    std::condition_variable room_, done_;
};

struct Stopper {
    ChunkQueue& queue;
    ~Stopper() { queue.stop(); }
};

class Sampling {
public:
    explicit Sampling(const SampleRequest& request) : request_(request), stream_(request.key), symmetries_(request.cell.size) {
        for (int i = 0; i < request.threads; ++i) evaluators_.push_back(make_evaluator(request.cell));
    }

    Sample run(const Heartbeat& heartbeat) {
        Watch watch([&] { heartbeat(progress()); });
        if (request_.threads == 1) {
            watch.run(1, [this](int) { draw_alone(); });
        } else {
            ChunkQueue queue(std::min<std::size_t>(64 * request_.threads, 1024));
            watch.run(request_.threads, [&](int thread) { thread == 0 ? accept_all(queue) : work_on(queue, *evaluators_[thread]); });
        }
        sample_.stalled = wanted(0) || wanted(1);
        return std::move(sample_);
    }

private:
    bool wanted(int kind) const {
        return taken_[kind] < request_.quota[kind] && taken_[0] + taken_[1] < request_.total;
    }

    bool finished() const {
        return (!wanted(0) && !wanted(1)) || sample_.drawn - last_ >= request_.stall || sample_.hopeless;
    }
    Progress progress() const { return {sample_.drawn, {taken_[0], taken_[1]}, sample_.undecided, sample_.steps}; }

    // Whether the request would take more work than allowed even at the highest rate of instances that the count so far makes
    // plausible: an event seen n times hardly ever has an expected count above n + 2 sqrt(n) + 3.
    bool is_hopeless() const {
        if (request_.max_steps == 0) return false;
        const auto work = static_cast<double>(sample_.steps), allowed = static_cast<double>(request_.max_steps);
        const auto too_slow = [&](std::int64_t seen, std::int64_t order) {
            const auto n = static_cast<double>(seen);
            return work * static_cast<double>(order) > allowed * (n + 2 * std::sqrt(n) + 3);
        };
        if (work > allowed) return true;
        if (request_.total < request_.quota[0] + request_.quota[1]) return too_slow(taken_[0] + taken_[1], request_.total);
        return (wanted(0) && too_slow(taken_[0], request_.quota[0])) || (wanted(1) && too_slow(taken_[1], request_.quota[1]));
    }

    using Chunk = std::vector<Candidate>;

    void evaluate(Evaluator& evaluator, std::uint64_t first, Chunk& chunk, const bool open[2],
                  const ChunkQueue* queue = nullptr) {
        for (std::size_t i = 0; i < chunk.size(); ++i) {
            if (queue != nullptr && queue->is_over()) return;  // nobody will look at the results
            // If a single candidate took too long, the request is given up there, and nobody will look at later candidates. The
            // evaluator that threw must not be used again either.
            if (first + i > too_long_) return;
            try {
                evaluate_one(evaluator, first + i, chunk[i], open);
            } catch (const Effort::Exceeded&) {
                chunk[i].kind = Kind::undecided;
                chunk[i].steps = request_.max_steps + 1;
                give_up_behind(first + i);
            }
        }
    }
    void evaluate_one(Evaluator& evaluator, std::uint64_t number, Candidate& candidate, const bool open[2]) {
        const Effort::Bound bound(request_.max_steps);
        candidate.kind = evaluator.draw(stream_, number);
        candidate.complete = true;
        const int kind = static_cast<int>(candidate.kind);
        if (kind < 2 && open[kind]) candidate.complete = evaluator.read(candidate.instance, request_.both);
        candidate.steps = evaluator.steps();
    }
    void give_up_behind(std::uint64_t number) {
        for (auto least = too_long_.load(); number < least && !too_long_.compare_exchange_weak(least, number);) {
        }
    }
    void accept(Chunk& chunk) {
        for (Candidate& candidate : chunk) {
            if (finished()) return;
            count(candidate);
            const int kind = static_cast<int>(candidate.kind);
            if (kind >= 2 || !wanted(kind)) continue;
            if (!candidate.complete) ++sample_.undecided;
            if (!candidate.complete || !is_new(candidate.instance)) continue;
            ++taken_[kind];
            last_ = sample_.drawn;
            sample_.instances.push_back(candidate.instance);
        }
    }

    void count(const Candidate& candidate) {
        ++sample_.drawn;
        sample_.steps += candidate.steps;
        if (candidate.kind == Kind::undecided) ++sample_.undecided;
        if (sample_.steps < next_check_ && (request_.max_steps == 0 || sample_.steps <= request_.max_steps)) return;
        next_check_ = sample_.steps + between_checks;
        sample_.hopeless = is_hopeless();
    }

    void draw_alone() {
        Chunk one(1);
        while (!finished()) {
            const bool open[2] = {wanted(0), wanted(1)};
            evaluate(*evaluators_[0], sample_.drawn, one, open);
            accept(one);
        }
    }
    // Candidates are independent of each other, so any thread may evaluate the next chunk, up to a limit ahead of the chunk to be
    // accepted next. One thread accepts the chunks in order, and evaluates chunks itself while the next one is not ready.
    void accept_all(ChunkQueue& queue) {
        const Stopper stopper{queue};  // so that no thread waits for more work, even after an exception
        for (std::uint64_t number = 0; !finished();) {
            queue.set_open(wanted(0), wanted(1));
            std::uint64_t mine;
            if (queue.is_ready(number)) {
                accept(queue.chunk(number));
                queue.release(number++);
            } else if (queue.take(mine)) {
                work_on_chunk(queue, *evaluators_[0], mine);
            } else {
                queue.wait_for_ready(number);
                Watch::look();
            }
        }
    }
    void work_on(ChunkQueue& queue, Evaluator& evaluator) {
        for (std::uint64_t number; queue.wait_and_take(number);) work_on_chunk(queue, evaluator, number);
    }
    void work_on_chunk(ChunkQueue& queue, Evaluator& evaluator, std::uint64_t number) {
        bool open[2];
        queue.read_open(open);
        evaluate(evaluator, number * ChunkQueue::length, queue.chunk(number), open, &queue);
        queue.finish(number);
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

    static constexpr std::uint64_t between_checks = 1 << 24;
    const SampleRequest& request_;
    Stream stream_;
    Symmetries symmetries_;
    std::vector<std::unique_ptr<Evaluator>> evaluators_;
    std::unordered_set<std::string> seen_;
    std::int64_t taken_[2] = {0, 0};
    std::uint64_t last_ = 0, next_check_ = between_checks;
    std::atomic<std::uint64_t> too_long_ = std::numeric_limits<std::uint64_t>::max();  // the first candidate known to exceed max_steps
    Sample sample_;
};

// Lists every canonical form of a cell in ascending order: hole sets that are the least of their images, and on each of them the
// agents that are the least under the symmetries that leave the holes unchanged.
class Enumeration {
public:
    Enumeration(const GridCell& cell, int list_kind)
        : cell_(cell), list_kind_(list_kind), symmetries_(cell.size),
          evaluator_(make_evaluator(cell)), used_as_goal_(static_cast<std::size_t>(cell.size) * cell.size) {}

    Forms run(const std::function<void()>& heartbeat) {
        Watch(heartbeat).run(1, [this](int) { choose_holes(0); });
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
        pace_.step(100);
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
            pace_.step(cells());
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
        pace_.step(100);
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
    Effort pace_;
    Symmetries symmetries_;
    std::unique_ptr<Evaluator> evaluator_;
    std::vector<Cell> holes_, starts_, goals_;
    std::vector<std::uint8_t> used_as_goal_;
    std::vector<int> stabilizer_;
    std::vector<std::pair<Cell, Cell>> agents_, moved_agents_;
    Forms forms_;
};

}  // namespace

Sample sample_cell(const SampleRequest& request, const Heartbeat& heartbeat) {
    return Sampling(request).run(heartbeat);
}

Forms enumerate_cell(const GridCell& cell, int list_kind, const std::function<void()>& heartbeat) {
    return Enumeration(cell, list_kind).run(heartbeat);
}

}  // namespace t2t
