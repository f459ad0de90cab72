// Sources of lakes: drawn at random and proven solvable, or taken from a pool. Lake n of a stream depends only on the stream's key,
// n and the source, not on when or in which order lakes are drawn.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "generator/generator.hpp"
#include "generator/stream.hpp"
#include "stepping/lake.hpp"

namespace t2t {

class Evaluator;

// Values of an optimum that are not a number of steps.
inline constexpr int optimum_unknown = -1, optimum_undecided = -2;

struct Drawn {
    Map map;
    int optimum = optimum_unknown;  // of the source's objective
    std::uint64_t name = 0;         // what the lake was drawn with, or its place in the pool
    std::uint64_t turn = 0;         // odd and random: determines the order of its variants
};

class LakeSource {
public:
    virtual ~LakeSource() = default;
    virtual void draw(Stream stream, Drawn& out) = 0;
    virtual bool pooled() const { return false; }  // lakes of a pool are played as they are
};

// Thrown if this many candidates in a row were not a lake of the requested kind.
struct NoSuchLake {
    std::uint64_t drawn, undecided;
};

// One of the kinds of lake that are drawn. A number below 2^32 decides: the first part with a larger `up_to` is taken.
struct Part {
    static constexpr std::int64_t any = -1;
    int size = 0, holes = 0;
    std::uint64_t up_to = 0;
    std::int64_t wait = any;  // the probability, in units of 2^-32, that it must require a wait; or `any`
};

class RandomLakes final : public LakeSource {
public:
    // `hole`: the holes of all lakes, or empty if holes are drawn too.
    RandomLakes(std::vector<Part> parts, std::vector<std::uint8_t> hole, int agents, Objective objective, std::uint64_t max_nodes,
                std::uint64_t stall);
    ~RandomLakes() override;
    void draw(Stream stream, Drawn& out) override;

private:
    const std::vector<Part> parts_;
    const std::vector<std::uint8_t> hole_;
    const int agents_;
    const Objective objective_;
    const std::uint64_t max_nodes_, stall_;
    std::vector<std::unique_ptr<Evaluator>> evaluators_;  // per part, made when it is first drawn
};

class LakePool final : public LakeSource {
public:
    explicit LakePool(std::vector<Drawn> lakes) : lakes_(std::move(lakes)) {}
    void draw(Stream stream, Drawn& out) override { out = lakes_[stream.below(static_cast<std::uint32_t>(lakes_.size()))]; }
    bool pooled() const override { return true; }

private:
    const std::vector<Drawn> lakes_;
};

}  // namespace t2t
