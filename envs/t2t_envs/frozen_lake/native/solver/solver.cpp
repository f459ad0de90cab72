#include "solver/solver.hpp"

#include "core.hpp"
#include "solver/exhaustive.hpp"

namespace t2t {

// One core per word count. A map needs size * (size + 1) bits.
struct Solver::Impl {
    explicit Impl(Method chosen) : method(chosen), small(chosen), medium(chosen) {}

    Method method;
    Core<1> small;
    Core<2> medium;
    std::unique_ptr<Core<5>> large;
    std::unique_ptr<Core<17>> largest;

    template <typename Use>
    auto with_core(int size, Use use) {
        if (size <= 7) return use(small);
        if (size <= 10) return use(medium);
        if (size <= 16) {
            if (!large) large = std::make_unique<Core<5>>(method);
            return use(*large);
        }
        if (!largest) largest = std::make_unique<Core<17>>(method);
        return use(*largest);
    }
};

Solver::Solver(Method method) : impl_(std::make_unique<Impl>(method)) {}
Solver::~Solver() = default;

Label Solver::label(const Problem& problem, Objective objective, std::uint64_t max_nodes, bool want_wait) {
    if (impl_->method == Method::exhaustive) return exhaustive_label(problem, objective, max_nodes, want_wait);
    return impl_->with_core(problem.size, [&](auto& core) { return core.label(problem, objective, max_nodes, want_wait); });
}

Solution Solver::solve(const Problem& problem, Objective objective, std::uint64_t max_nodes) {
    if (impl_->method == Method::exhaustive) return exhaustive_search(problem, objective, true, unlimited, max_nodes);
    return impl_->with_core(problem.size, [&](auto& core) { return core.solve(problem, objective, max_nodes); });
}

}  // namespace t2t
