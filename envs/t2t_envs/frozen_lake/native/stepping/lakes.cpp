#include "stepping/lakes.hpp"

#include <utility>

#include "generator/generator_evaluator.hpp"

namespace t2t {

RandomLakes::RandomLakes(std::vector<Part> parts, std::vector<std::uint8_t> hole, int agents, Objective objective,
                         std::uint64_t max_nodes, std::uint64_t stall)
    : parts_(std::move(parts)), hole_(std::move(hole)), agents_(agents), objective_(objective), max_nodes_(max_nodes),
      stall_(stall), evaluators_(parts_.size()) {}
RandomLakes::~RandomLakes() = default;

void RandomLakes::draw(Stream stream, Drawn& out) {
    out.name = stream.next();
    out.turn = stream.next() | 1;
    const std::uint64_t which = stream.next() >> 32, wait = stream.next() >> 32;
    std::size_t at = 0;
    while (at + 1 < parts_.size() && which >= parts_[at].up_to) ++at;
    const Part& part = parts_[at];
    auto& evaluator = evaluators_[at];
    if (!evaluator) {
        evaluator = make_evaluator({part.size, part.holes, agents_, objective_, max_nodes_});
        if (!hole_.empty()) evaluator->give_holes(hole_);
    }
    const bool either = part.wait == Part::any;
    const Kind wanted = !either && wait < static_cast<std::uint64_t>(part.wait) ? Kind::wait : Kind::wait_free;
    const Stream candidates(out.name);
    std::uint64_t undecided = 0;
    for (std::uint64_t i = 0; i < stall_; ++i) {
        const Kind kind = either ? evaluator->draw_solvable(candidates, i) : evaluator->draw(candidates, i);
        undecided += kind == Kind::undecided;
        if (kind != wanted) continue;
        out.map.size = part.size;
        evaluator->read_cells(out.map.hole, out.map.starts.data(), out.map.goals.data());
        const int known = evaluator->known_optimum(objective_);
        out.optimum = known < 0 ? optimum_unknown : known;
        return;
    }
    throw NoSuchLake{stall_, undecided};
}

}  // namespace t2t
