// One environment: a stream of lakes, each played several times in other guises, and the episode on the present one.
#pragma once
#include <cstdint>
#include <string>

#include "prefetch.hpp"
#include "stepping/lakes.hpp"
#include "stepping/observation.hpp"

namespace t2t {

// How often a drawn lake is played. Each time under another symmetry of the grid, with the agents in another order and, where
// `reversible`, perhaps from the goals to the starts: optima stay as they are (reversed, that of the makespan alone does).
struct Reuse {
    std::uint64_t plays = 1;
    bool reversible = false;
};

class Seat {
public:
    Seat(LakeSource& source, const Reuse& reuse, int agents);
    Seat(const Seat&) = delete;  // the episode points to the map
    Seat& operator=(const Seat&) = delete;
    Seat(Seat&& other) = delete;

    void set_source(LakeSource& source) { source_ = &source, left_ = 0; }
    // The stream starts anew.
    void seed(std::uint64_t key) { key_ = key, drawn_ = 0, left_ = 0; }
    // Plays the next lake of the stream.
    void restart();
    // Plays a given lake; the stream stays where it is.
    void play(const Drawn& given);
    bool loaded() const { return lake.map != nullptr; }
    const Map& map() const { return map_; }
    const Drawn& drawn() const { return given_ ? played_ : base_; }
    bool is_given() const { return given_; }
    std::uint64_t guise() const { return given_ ? 0 : guise_; }  // how often this lake was played before

    // The optimum of the lake being played; searched for where it is not known, and kept for its other guises.
    int optimum(Objective objective, std::uint64_t max_nodes);
    // What is known of it.
    int known_optimum() const { return drawn().optimum; }
    void set_optimum(int optimum) { (given_ ? played_ : base_).optimum = optimum; }

    // The steps that an agent would need alone to its goal, from where it is and from its start; 0xffff where it cannot get
    // there. Found when first asked for.
    int distance(int agent);
    int distance_from_start(int agent);

    // Has the cache fetch what the next step or restart will read.
    void prefetch() const {
        t2t::prefetch(&lake.positions), t2t::prefetch(&lake.since), t2t::prefetch(&lake.step);
        t2t::prefetch(map_.goals.data());
        t2t::prefetch(map_.hole.data()), t2t::prefetch(map_.hole.data() + 64);
        if (lake.done()) {
            t2t::prefetch(base_.map.hole.data()), t2t::prefetch(base_.map.hole.data() + 64);
            t2t::prefetch(base_.map.starts.data()), t2t::prefetch(base_.map.goals.data());
        }
    }

    // Everything that decides what happens from here on, as bytes, and back.
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
    const std::uint64_t variants_;  // guises that a lake has
    std::uint64_t key_ = 0, drawn_ = 0;       // of the stream; how many lakes were drawn of it
    std::uint64_t left_ = 0, guise_ = 0, variant_ = 0, turn_ = 0;  // plays left of the lake; of those so far
    Drawn base_, played_;                     // as drawn of the stream; as given from outside
    std::vector<std::uint8_t> transposed_;    // the holes of `base_`, rows and columns changed; empty until asked for
    bool given_ = false;
    Map map_;
    std::vector<std::uint16_t> distances_;    // per agent and cell, empty until asked for
};

}  // namespace t2t
