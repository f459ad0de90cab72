#include "stepping/seat.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "solver/solver.hpp"

namespace t2t {
namespace {

constexpr std::uint16_t walls = 0xffff;

// A symmetry of the n x n grid: it moves cell (r, c) to base + r * row + c * column. The order is that of instance.SYMMETRIES; the
// first one is the identity.
struct Symmetry {
    int base, row, column;
    Symmetry(int which, int n) {
        const bool turned = which & 4;
        const bool down = turned ? which & 2 : which & 2, right = which & 1;
        base = (down ? n * (n - 1) : 0) + (right ? n - 1 : 0);
        row = turned ? (right ? -1 : 1) : (down ? -n : n);
        column = turned ? (down ? -n : n) : (right ? -1 : 1);
    }
    bool turned() const { return row == 1 || row == -1; }
    Spot image(const std::array<std::int32_t, 2>& cell) const { return base + cell[0] * row + cell[1] * column; }
};

std::uint64_t factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }

// Takes the last digit of a mixed-radix number. There are many digits, so small numbers are divided by multiplication, which is
// several times as fast. It is exact: with m = (2^32 + e) / radix, e < 16, and rest < 2^28, the product rest * m exceeds
// rest * 2^32 / radix by less than 2^32 / radix.
int take_digit(std::uint64_t& rest, std::uint32_t radix) {
    static constexpr auto reciprocals = [] {
        std::array<std::uint64_t, lake_agents + 1> table{};
        for (std::uint64_t d = 1; d < table.size(); ++d) table[d] = ((std::uint64_t{1} << 32) + d - 1) / d;
        return table;
    }();
    const std::uint64_t quotient = rest < 1u << 28 ? rest * reciprocals[radix] >> 32 : rest / radix;
    const int digit = static_cast<int>(rest - quotient * radix);
    rest = quotient;
    return digit;
}

std::uint64_t reversed_bytes(std::uint64_t word) {  // compilers turn this into one instruction
    std::uint64_t reversed = 0;
    for (int i = 0; i < 8; ++i) reversed |= (word >> 8 * i & 0xff) << 8 * (7 - i);
    return reversed;
}

// Writes the n cells of a row forwards or backwards. Rows of 8 to 16 cells, which most lakes have, are written as two words that may
// overlap.
void place_row(const std::uint8_t* from, int n, std::uint8_t* to, bool backwards) {
    if (n < 8 || n > 16) {
        backwards ? std::reverse_copy(from, from + n, to) : std::copy(from, from + n, to);
        return;
    }
    std::uint64_t first, last;
    std::memcpy(&first, from, 8), std::memcpy(&last, from + n - 8, 8);
    if (backwards) first = std::exchange(last, reversed_bytes(first)), first = reversed_bytes(first);
    std::memcpy(to, &first, 8), std::memcpy(to + n - 8, &last, 8);
}

class Writer {
public:
    template <typename T>
    void put(const T& value) {
        text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(const Drawn& drawn) {
        put(drawn.optimum), put(drawn.name), put(drawn.turn), put(drawn.map.size);
        text.append(reinterpret_cast<const char*>(drawn.map.hole.data()), drawn.map.hole.size());
        put(drawn.map.starts), put(drawn.map.goals);
    }
    std::string text;
};

class Reader {
public:
    explicit Reader(const std::string& text) : text_(text) {}
    template <typename T>
    void get(T& value) {
        std::memcpy(&value, next(sizeof value), sizeof value);
    }
    void get(Drawn& drawn) {
        get(drawn.optimum), get(drawn.name), get(drawn.turn), get(drawn.map.size);
        if (drawn.map.size < 0 || drawn.map.size > largest_lake) throw std::invalid_argument("not the state of an environment");
        drawn.map.hole.resize(static_cast<std::size_t>(drawn.map.size) * drawn.map.size);
        const char* holes = next(drawn.map.hole.size());
        std::copy_n(holes, drawn.map.hole.size(), drawn.map.hole.begin());  // a seat that never drew has none
        get(drawn.map.starts), get(drawn.map.goals);
    }

private:
    const char* next(std::size_t size) {
        if (text_.size() - at_ < size) throw std::invalid_argument("not the state of an environment");
        at_ += size;
        return text_.data() + at_ - size;
    }
    const std::string& text_;
    std::size_t at_ = 0;
};

}  // namespace

Seat::Seat(LakeSource& source, const Reuse& reuse, int agents)
    : source_(&source), reuse_(reuse), agents_(agents), variants_(8 * factorial(agents) * (reuse.reversible ? 2 : 1)) {}

void Seat::restart() {
    if (left_ == 0) {
        source_->draw(Stream(key_).fork(drawn_), base_);
        ++drawn_;
        const bool varies = !source_->pooled() && reuse_.plays > 1;
        const std::uint64_t variants = varies ? variants_ : 1;
        left_ = std::min(reuse_.plays, variants);
        variant_ = guise_ = 0;
        turn_ = base_.turn % variants | 1;
        while (std::gcd(turn_, variants) != 1) turn_ = (turn_ + 2) % variants | 1;
        map_ = base_.map;
        transposed_.clear();
    } else {
        variant_ += turn_;  // both are less than `variants_`
        if (variant_ >= variants_) variant_ -= variants_;
        ++guise_;
        disguise();
    }
    --left_;
    given_ = false;
    begin();
}

void Seat::play(const Drawn& given) {
    played_ = given;
    map_ = given.map;
    given_ = true;
    left_ = 0;  // an interrupted lake is not resumed
    begin();
}

void Seat::begin() {
    distances_.clear();
    lake.load(map_, agents_);
}

void Seat::disguise() {
    const Map& base = base_.map;
    const int n = base.size;
    std::uint64_t rest = variant_;
    const Symmetry symmetry(take_digit(rest, 8), n);
    const bool turned = symmetry.turned();  // if rows become columns, the rows of the transpose are rows of the variant
    const std::uint8_t* hole = turned ? transpose().data() : base.hole.data();
    const int down = turned ? symmetry.column : symmetry.row, across = turned ? symmetry.row : symmetry.column;
    std::uint8_t* out = map_.hole.data() + symmetry.base - (across < 0 ? n - 1 : 0);
    for (int r = 0; r < n; ++r) place_row(hole + r * n, n, out + r * down, across < 0);
    std::uint64_t left = 0xfedcba9876543210;  // the agents without a place so far, four bits each
    std::array<std::uint8_t, lake_agents> order;
    for (int i = 0; i < agents_; ++i) {
        const int shift = 4 * take_digit(rest, agents_ - i);
        const std::uint64_t below = (std::uint64_t{1} << shift) - 1;
        order[i] = left >> shift & 15;
        left = (left & below) | (left >> 4 & ~below);
    }
    const bool reversed = rest != 0;
    const auto& cells = geometry_of(n).coordinates;
    for (int i = 0; i < agents_; ++i) {
        const Spot start = symmetry.image(cells[base.starts[order[i]]]), goal = symmetry.image(cells[base.goals[order[i]]]);
        map_.starts[i] = reversed ? goal : start;
        map_.goals[i] = reversed ? start : goal;
    }
}

const std::vector<std::uint8_t>& Seat::transpose() {
    if (!transposed_.empty()) return transposed_;
    const int n = base_.map.size;
    transposed_.resize(base_.map.hole.size());
    for (int r = 0; r < n; ++r) {
        for (int c = 0; c < n; ++c) transposed_[c * n + r] = base_.map.hole[r * n + c];
    }
    return transposed_;
}

int Seat::optimum(Objective objective, std::uint64_t max_nodes) {
    if (known_optimum() != optimum_unknown) return known_optimum();
    Problem problem;
    problem.size = map_.size;
    problem.hole = map_.hole;
    problem.starts.assign(map_.starts.begin(), map_.starts.begin() + agents_);
    problem.goals.assign(map_.goals.begin(), map_.goals.begin() + agents_);
    const Label label = Solver().label(problem, objective, max_nodes, false);
    set_optimum(label.status == Status::solved ? label.cost : optimum_undecided);
    return known_optimum();
}

int Seat::distance(int agent) {
    if (distances_.empty()) measure();
    return distances_[static_cast<std::size_t>(agent) * map_.hole.size() + lake.positions[agent]];
}
int Seat::distance_from_start(int agent) {
    if (distances_.empty()) measure();
    return distances_[static_cast<std::size_t>(agent) * map_.hole.size() + map_.starts[agent]];
}

void Seat::measure() {
    const std::size_t cells = map_.hole.size();
    distances_.assign(cells * agents_, walls);
    std::vector<Spot> queue(cells);
    for (int agent = 0; agent < agents_; ++agent) {
        std::uint16_t* distance = distances_.data() + agent * cells;
        queue[0] = map_.goals[agent];
        distance[queue[0]] = 0;
        for (std::size_t head = 0, tail = 1; head < tail; ++head) {
            for (const Spot to : lake.geometry->next[queue[head]]) {
                if (map_.hole[to] || distance[to] != walls) continue;
                distance[to] = static_cast<std::uint16_t>(distance[queue[head]] + 1);
                queue[tail++] = to;
            }
        }
    }
}

std::string Seat::save() const {
    Writer out;
    for (const std::uint64_t number : {key_, drawn_, left_, guise_, variant_, turn_}) out.put(number);
    out.put(base_), out.put(played_), out.put(given_);
    out.put(loaded());
    out.put(lake.positions), out.put(lake.since), out.put(lake.step), out.put(lake.terminated), out.put(lake.truncated);
    out.put(lake.fell), out.put(lake.conflict), out.put(lake.faults);
    return std::move(out.text);
}

void Seat::load(const std::string& state) {
    Reader in(state);
    for (std::uint64_t* number : {&key_, &drawn_, &left_, &guise_, &variant_, &turn_}) in.get(*number);
    if (variant_ >= variants_ || turn_ > variants_) throw std::invalid_argument("not the state of an environment");
    bool was_loaded = false;
    in.get(base_), in.get(played_), in.get(given_), in.get(was_loaded);
    transposed_.clear();
    if (was_loaded) {
        map_ = drawn().map;
        if (!given_ && variant_ != 0) disguise();
        begin();
    }
    in.get(lake.positions), in.get(lake.since), in.get(lake.step), in.get(lake.terminated), in.get(lake.truncated);
    in.get(lake.fell), in.get(lake.conflict), in.get(lake.faults);
    for (const auto* cells : {&lake.positions, &map_.starts, &map_.goals, &base_.map.starts, &base_.map.goals}) {
        const std::size_t size = cells == &base_.map.starts || cells == &base_.map.goals ? base_.map.hole.size() : map_.hole.size();
        for (int i = 0; i < agents_ && size > 0; ++i) {
            if ((*cells)[i] < 0 || static_cast<std::size_t>((*cells)[i]) >= size) {
                throw std::invalid_argument("not the state of an environment");
            }
        }
    }
}

}  // namespace t2t
