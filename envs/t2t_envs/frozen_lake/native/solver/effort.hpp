// What a search may spend, and what it has spent.
#pragma once
#include <cstdint>

#include "watch.hpp"

namespace t2t {

class Effort {
public:
    Effort() = default;
    explicit Effort(std::uint64_t most_nodes) : max_nodes(most_nodes) {}

    std::uint64_t nodes = 0, max_nodes = 0;  // search nodes stored and expanded, the unit of the limit
    bool spent() const { return nodes >= max_nodes; }

    // Counts steps of work, each of some ten nanoseconds, and looks every few milliseconds whether to go on at all.
    void step(std::int64_t steps = 1) {
        if ((left_ -= steps) < 0) pause();
    }
    // Steps so far. They depend on the problem alone, not on the machine or the threads.
    std::uint64_t steps() const { return done_ + static_cast<std::uint64_t>(stretch - left_); }

private:
    static constexpr std::int64_t stretch = 1 << 18;
    void pause() {
        done_ += static_cast<std::uint64_t>(stretch - left_);
        left_ = stretch;
        Watch::look();
    }
    std::int64_t left_ = stretch;
    std::uint64_t done_ = 0;
};

}  // namespace t2t
