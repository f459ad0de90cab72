// One environment: a stream of lakes, each played several times in different variants, and the current episode.
#pragma once
#include <cstdint>
#include <string>

#include "prefetch.hpp"
#include "stepping/lakes.hpp"
#include "stepping/observation.hpp"

namespace t2t {

// How often a drawn lake is played. Each time it is under another symmetry of the grid, with the agents in another order and, if
// `reversible`, perhaps from the goals to the starts. The optimum stays the same (for reversed lakes, only that of the makespan).
struct Reuse {
    std::uint64_t plays = 1;
    bool reversible = false;
};

class Seat {
public:
    Seat(LakeSource& source, const Reuse& reuse, int agents);
    Seat(const Seat&) = delete;  // because the episode points to the map
    Seat& operator=(const Seat&) = delete;
    Seat(Seat&& other) = delete;

    void set_source(LakeSource& source) { source_ = &source, left_ = 0; }
    // Restarts the stream with this key.
    void seed(std::uint64_t key) { key_ = key, drawn_ = 0, left_ = 0; }
    // Plays the next lake of the stream.
    void restart();
    // Plays a given lake without advancing the stream.
    void play(const Drawn& given);
    bool loaded() const { return lake.map != nullptr; }
    const Map& map() const { return map_; }
    const Drawn& drawn() const { return given_ ? played_ : base_; }
    bool is_given() const { return given_; }
    std::uint64_t guise() const { return given_ ? 0 : guise_; }  // how often this lake was played before

    // The optimum of the lake being played. It is searched for if it is not known, and kept for the lake's other variants.
    int optimum(Objective objective, std::uint64_t max_nodes);
    // The optimum if it is already known, otherwise `optimum_unknown` or `optimum_undecided`.
    int known_optimum() const { return drawn().optimum; }
    void set_optimum(int optimum) { (given_ ? played_ : base_).optimum = optimum; }

    // The steps that an agent would need to its goal without the others, from where it is and from its start; 0xffff if it cannot
    // reach it. Computed on first use.
    int distance(int agent);
    int distance_from_start(int agent);

    // Asks the cache to fetch the data that the next step or restart will read.
    void prefetch() const {
        t2t::prefetch(&lake.positions), t2t::prefetch(&lake.since), t2t::prefetch(&lake.step);
        t2t::prefetch(map_.goals.data());
        t2t::prefetch(map_.hole.data()), t2t::prefetch(map_.hole.data() + 64);
        if (lake.done()) {
            t2t::prefetch(base_.map.hole.data()), t2t::prefetch(base_.map.hole.data() + 64);
            t2t::prefetch(base_.map.starts.data()), t2t::prefetch(base_.map.goals.data());
        }
    }

    // Writes everything that determines the future of the environment as bytes, and reads it back.
    std::string save() const;
    void load(const std::string& state);

    Lake lake;

private:
    void disguise();
    const std::vector<std::uint8_t>& transpose();
    void begin();
    void measure();

    LakeSource* source_;
    const Reuse reuse_;
    const int agents_;
    const std::uint64_t variants_;            // the number of variants of a lake
    std::uint64_t key_ = 0, drawn_ = 0;       // the stream's key, and how many lakes were drawn from it
    std::uint64_t left_ = 0, guise_ = 0, variant_ = 0, turn_ = 0;  // the lake's plays left and plays before; variant and its step
    Drawn base_, played_;                     // the lake drawn from the stream, and the lake given to `play`
    std::vector<std::uint8_t> transposed_;    // the holes of `base_` with rows and columns swapped; empty until first used
    bool given_ = false;
    Map map_;
    std::vector<std::uint16_t> distances_;    // per agent and cell; empty until first used
};

}  // namespace t2t
