// Python bindings of the sources of lakes and of the options of environments.
#include "stepping/arrays.hpp"

namespace t2t {
namespace {

using PartTuple = std::tuple<int, int, std::uint64_t, std::int64_t>;  // the members of a Part

std::shared_ptr<LakeSource> random_lakes(const std::vector<PartTuple>& parts, const Array<std::uint8_t>& hole, int agents,
                                         int objective, std::uint64_t max_nodes, std::uint64_t stall) {
    if (parts.empty()) throw py::value_error("parts must not be empty");
    if (agents < 1 || agents > lake_agents) throw py::value_error("agents must lie in 1..16");
    if (objective != 0 && objective != 1) throw py::value_error("an objective is 0 (makespan) or 1 (sum of costs)");
    std::vector<Part> kinds;
    for (const auto& [size, holes, up_to, wait] : parts) {
        if (size < 3 || size > 32) throw py::value_error("random lakes have sizes 3..32");
        if (holes < 0 || holes + agents > size * size) throw py::value_error("holes and agents do not fit on the grid");
        if (hole.size() != 0 && hole.size() != size * size) throw py::value_error("holes must have size * size entries");
        kinds.push_back({size, holes, up_to, wait});
    }
    return std::make_shared<RandomLakes>(std::move(kinds), std::vector<std::uint8_t>(hole.data(), hole.data() + hole.size()),
                                         agents, static_cast<Objective>(objective), max_nodes, stall);
}

// A pool from flat arrays of lakes of any sizes: size and optimum (below 0 if unknown) per lake, holes one lake after the other,
// starts and goals (n, k).
std::shared_ptr<LakeSource> lake_pool(const Array<std::int32_t>& sizes, const Array<std::uint8_t>& holes,
                                      const Array<std::int32_t>& starts, const Array<std::int32_t>& goals,
                                      const Array<std::int32_t>& optima, int agents) {
    const auto count = static_cast<std::size_t>(sizes.size());
    if (agents < 1 || agents > lake_agents) throw py::value_error("agents must lie in 1..16");
    if (count < 1 || count > INT32_MAX || static_cast<std::size_t>(optima.size()) != count ||
        static_cast<std::size_t>(starts.size()) != count * agents || starts.size() != goals.size()) {
        throw py::value_error("sizes and optima must have one entry per lake, starts and goals one per lake and agent");
    }
    std::vector<Drawn> lakes;
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const int size = sizes.data()[i];
        if (size < 3 || size > largest_lake) throw py::value_error("size must lie in 3..256");
        const std::size_t cells = static_cast<std::size_t>(size) * size;
        if (at + cells > static_cast<std::size_t>(holes.size())) throw py::value_error("holes must have size * size entries per lake");
        lakes.push_back(drawn_from(size, agents, holes.data() + at, starts.data() + i * agents, goals.data() + i * agents,
                                   optima.data()[i]));
        lakes.back().name = i;
        at += cells;
    }
    if (at != static_cast<std::size_t>(holes.size())) throw py::value_error("holes must have size * size entries per lake");
    return std::make_shared<LakePool>(std::move(lakes));
}

}  // namespace

void bind_sources(py::module_& module) {
    using namespace py::literals;
    static py::exception<NoSuchLake> no_such_lake(module, "NoSuchLake");
    py::register_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const NoSuchLake& none) {
            PyErr_SetObject(no_such_lake.ptr(), py::make_tuple(none.drawn, none.undecided).ptr());
        }
    });
    py::class_<LakeSource, std::shared_ptr<LakeSource>>(module, "LakeSource", "Where environments take their lakes from.")
        .def_static("random", &random_lakes, "parts"_a, "hole"_a, "agents"_a, "objective"_a, "max_nodes"_a, "stall"_a,
                    "Solvable random lakes. A part is (size, holes, up_to, wait): a number below 2^32 is drawn, and the first part\n"
                    "with a larger up_to is taken; wait is the share that requires a wait, in units of 2^-32, or -1 for either kind.\n"
                    "hole: the holes of all lakes, row by row; empty if they are drawn too.")
        .def_static("pool", &lake_pool, "sizes"_a, "holes"_a, "starts"_a, "goals"_a, "optima"_a, "agents"_a,
                    "Given lakes, all equally likely. Optima below 0 are unknown.");
    py::class_<EnvOptions>(module, "EnvOptions", "How an environment plays a lake and how it observes it.")
        .def(py::init(&env_options), "frame"_a, "agents"_a, "block_holes"_a, "block_conflicts"_a, "max_steps"_a, "form"_a, "view"_a,
             "relative_goals"_a, "pixels"_a, "reuse"_a, "reversible"_a, "objective"_a, "max_nodes"_a);
}

}  // namespace t2t
