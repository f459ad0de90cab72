// Watches long work, so that it can end early: on the user's interrupt, on an error in another thread, or at the caller's request.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace t2t {

// Thrown by work that has been told to stop.
struct Stopped {};

// One call into the core, on any number of threads. The thread that began it leads: about ten times a second it calls `beat`.
// If `beat` throws, for example because of a pending Python signal, the work of all threads ends.
class Watch {
public:
    using Beat = std::function<void()>;
    explicit Watch(Beat beat) : beat_(std::move(beat)) {}

    // Runs work(0) on this thread and work(1), .. on threads of their own, and waits for all of them. If one throws, the others
    // are told to stop, and the first exception is rethrown.
    template <typename Work>
    void run(int threads, Work work) {
        running_ = threads - 1;
        {
            std::vector<std::thread> others;  // std::jthread is missing from the standard library of many Macs
            const OnExit stop_and_join{[this, &others] {
                stop();
                for (std::thread& other : others) other.join();
            }};
            for (int i = 1; i < threads; ++i) others.emplace_back([this, work, i] { guarded(work, i, false); });
            guarded(work, 0, true);
            wait_for_others();
        }
        if (error_) std::rethrow_exception(error_);
    }

    // To be called by work now and then, on its own thread. Throws Stopped, or whatever `beat` throws.
    static void look() {
        if (here_.watch != nullptr) here_.watch->look_from(here_);
    }

private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds pulse{100};

    struct OnExit {
        std::function<void()> then;
        ~OnExit() { then(); }
    };
    struct Place {  // the watch of a thread, and whether the thread leads
        Watch* watch = nullptr;
        bool leads = false;
    };

    template <typename Work>
    void guarded(const Work& work, int thread, bool leads) {
        const Place before = here_;
        const OnExit leave{[this, before, leads] {
            here_ = before;
            if (!leads) end_one();
        }};
        here_ = {this, leads};
        try {
            work(thread);
        } catch (const Stopped&) {  // the thread that caused the stop reports why
        } catch (...) {
            fail(std::current_exception());
        }
    }
    void look_from(const Place& place) {
        if (stopped_.load(std::memory_order_relaxed)) throw Stopped{};
        if (!place.leads || Clock::now() - last_ < pulse) return;
        last_ = Clock::now();
        beat_();
    }
    void wait_for_others() {
        std::unique_lock lock(mutex_);
        while (running_ > 0) {
            ended_.wait_for(lock, pulse / 2);
            lock.unlock();
            try {
                if (!stopped_) look_from({this, true});
            } catch (...) {
                fail(std::current_exception());
            }
            lock.lock();
        }
    }
    void end_one() {
        const std::lock_guard lock(mutex_);
        --running_;
        ended_.notify_one();
    }
    void fail(std::exception_ptr error) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = error;
        stopped_ = true;
    }
    void stop() { stopped_ = true; }

    static thread_local Place here_;
    const Beat beat_;
    Clock::time_point last_ = Clock::now();
    std::atomic<bool> stopped_ = false;
    std::mutex mutex_;
    std::condition_variable ended_;
    std::exception_ptr error_;
    int running_ = 0;
};

}  // namespace t2t
