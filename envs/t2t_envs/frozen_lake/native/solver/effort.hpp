// How much work a search may do, and how much it has done.
#pragma once
#include <cstdint>

#include "watch.hpp"

namespace t2t {

class Effort {
public:
    // Thrown by work that takes more steps than allowed.
    struct Exceeded {};
    // While a bound lives, work that begins on this thread ends after this many steps (0: never).
    class Bound {
    public:
        explicit Bound(std::uint64_t most_steps) : before_(bound_) { bound_ = most_steps; }
        ~Bound() { bound_ = before_; }
        Bound(const Bound&) = delete;
        Bound& operator=(const Bound&) = delete;

    private:
        std::uint64_t before_;
    };

    Effort() = default;
    explicit Effort(std::uint64_t most_nodes) : max_nodes(most_nodes), most_(bound_) {}

    std::uint64_t nodes = 0, max_nodes = 0;  // search nodes stored and expanded; max_nodes limits their number
    bool spent() const { return nodes >= max_nodes; }

    // Counts steps of work of about ten nanoseconds each. Every few milliseconds it also checks whether the work must stop.
    void step(std::int64_t steps = 1) {
        if ((left_ -= steps) < 0) pause();
    }
    // Steps so far. They depend only on the problem, not on the machine or the threads.
    std::uint64_t steps() const { return done_ + static_cast<std::uint64_t>(stretch - left_); }

private:
    static constexpr std::int64_t stretch = 1 << 18;
    void pause() {
        done_ += static_cast<std::uint64_t>(stretch - left_);
        left_ = stretch;
        Watch::look();
        if (most_ != 0 && done_ > most_) throw Exceeded{};
    }
    static inline thread_local std::uint64_t bound_ = 0;
    std::int64_t left_ = stretch;
    std::uint64_t done_ = 0, most_ = 0;
};

}  // namespace t2t
