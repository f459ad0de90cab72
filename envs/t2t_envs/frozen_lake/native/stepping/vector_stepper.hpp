// Many episodes of one size side by side, their instances drawn from a pool.
#pragma once
#include "stepping/stepper.hpp"

namespace t2t {

struct Pool {
    std::vector<std::uint8_t> holes;  // per instance size * size
    std::vector<Cell> starts, goals;  // per instance k
    std::size_t count = 0;
};

class VectorStepper {
public:
    VectorStepper(const LakeOptions& options, Pool pool, std::size_t count);
    VectorStepper(const VectorStepper&) = delete;  // the lakes point into the pool
    VectorStepper& operator=(const VectorStepper&) = delete;

    void seed(std::size_t index, std::uint64_t key) { streams_[index] = Stream(key); }
    // Starts the next instance of the environment's stream.
    void restart(std::size_t index);
    // One joint step, `actions` is (count, k). An episode that has ended restarts instead. True where one did.
    bool step(const std::int64_t* actions);
    // Writes every environment's observation, one after the other.
    void observe(ObservationOut out, std::int64_t* steps) const;

    const LakeOptions& options() const { return options_; }
    const std::vector<Lake>& lakes() const { return lakes_; }
    const std::vector<std::int32_t>& instances() const { return instances_; }  // of each environment, its place in the pool
    const std::vector<std::uint8_t>& restarted() const { return restarted_; }  // whether the last step did
    std::size_t count() const { return lakes_.size(); }

private:
    LakeOptions options_;
    Geometry geometry_;
    Pool pool_;
    std::vector<Lake> lakes_;
    std::vector<Stream> streams_;
    std::vector<std::int32_t> instances_;
    std::vector<std::uint8_t> restarted_;
};

}  // namespace t2t
