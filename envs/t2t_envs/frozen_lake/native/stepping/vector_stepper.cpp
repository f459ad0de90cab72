#include "stepping/vector_stepper.hpp"

#include <utility>

namespace t2t {

VectorStepper::VectorStepper(const LakeOptions& options, Pool pool, std::size_t count)
    : options_(options), geometry_(options.size), pool_(std::move(pool)), lakes_(count), streams_(count, Stream(0)),
      instances_(count), restarted_(count) {
    for (std::size_t i = 0; i < count; ++i) restart(i);  // so that no call finds an empty lake; a reset reseeds
}

void VectorStepper::restart(std::size_t index) {
    const std::size_t instance = streams_[index].below(static_cast<std::uint32_t>(pool_.count));
    instances_[index] = static_cast<std::int32_t>(instance);
    const std::size_t agents = options_.agents;
    lakes_[index].load(options_, pool_.holes.data() + instance * options_.cells(), pool_.starts.data() + instance * agents,
                       pool_.goals.data() + instance * agents);
}

bool VectorStepper::step(const std::int64_t* actions) {
    bool any = false;
    for (std::size_t i = 0; i < lakes_.size(); ++i) {
        const bool done = lakes_[i].done();
        restarted_[i] = done;
        any |= done;
        if (done) {
            restart(i);
        } else {
            lakes_[i].advance(options_, geometry_, actions + i * options_.agents);
        }
    }
    return any;
}

void VectorStepper::observe(ObservationOut out, std::int64_t* steps) const {
    for (std::size_t i = 0; i < lakes_.size(); ++i) {
        t2t::observe(lakes_[i], options_, geometry_, -1, out);
        out.next(options_, options_.agents);
        if (steps) steps[i] = lakes_[i].step;
    }
}

}  // namespace t2t
