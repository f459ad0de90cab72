#include "watch.hpp"

namespace t2t {

thread_local Watch::Place Watch::here_;

}  // namespace t2t
