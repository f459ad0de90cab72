// How much more than alone the agents of a team must pay, from how much more every pair of them must pay.
#pragma once
#include <algorithm>

namespace t2t {

// excess[pair_number(i, j)] is a lower bound of x_i + x_j for the surplus x of each agent; returned is a lower bound of
// the sum of all surpluses. Up to five agents it is the rounded-up optimum of the linear relaxation (which pairs,
// triangles and five-cycles attain); beyond, a greedy matching.
inline int excess_bound(const int* excess, int agents) {
    const auto at = [excess](int i, int j) { return i < j ? excess[j * (j - 1) / 2 + i] : excess[i * (i - 1) / 2 + j]; };
    const int pairs = agents * (agents - 1) / 2;
    int largest = 0, total = 0;
    for (int p = 0; p < pairs; ++p) {
        largest = std::max(largest, excess[p]);
        total += excess[p];
    }
    if (largest == total || agents < 3) return largest;
    if (agents == 3) return std::max(largest, (total + 1) / 2);
    int best = largest;
    if (agents > 5) {
        bool used[16] = {};
        for (best = 0;;) {
            int top = 0, a = 0, b = 0;
            for (int j = 1; j < agents; ++j) {
                for (int i = 0; i < j; ++i) {
                    if (!used[i] && !used[j] && at(i, j) > top) top = at(i, j), a = i, b = j;
                }
            }
            if (top == 0) return best;
            best += top;
            used[a] = used[b] = true;
        }
    }
    const auto triangle = [&](int i, int j, int k) {
        const int sum = at(i, j) + at(i, k) + at(j, k);
        return std::max({at(i, j), at(i, k), at(j, k), (sum + 1) / 2});
    };
    if (agents == 4) {
        best = std::max({best, at(0, 1) + at(2, 3), at(0, 2) + at(1, 3), at(0, 3) + at(1, 2)});
        return std::max({best, triangle(0, 1, 2), triangle(0, 1, 3), triangle(0, 2, 3), triangle(1, 2, 3)});
    }
    // A pair and the other three: the triangle bound covers their matchings too.
    for (int j = 1; j < 5; ++j) {
        for (int i = 0; i < j; ++i) {
            int rest[3], n = 0;
            for (int k = 0; k < 5; ++k) {
                if (k != i && k != j) rest[n++] = k;
            }
            best = std::max(best, at(i, j) + triangle(rest[0], rest[1], rest[2]));
        }
    }
    if ((total + 1) / 2 <= best) return best;
    constexpr int cycles[12][5] = {{0, 1, 2, 3, 4}, {0, 1, 2, 4, 3}, {0, 1, 3, 2, 4}, {0, 1, 3, 4, 2},
                                   {0, 1, 4, 2, 3}, {0, 1, 4, 3, 2}, {0, 2, 1, 3, 4}, {0, 2, 1, 4, 3},
                                   {0, 2, 3, 1, 4}, {0, 2, 4, 1, 3}, {0, 3, 1, 2, 4}, {0, 3, 2, 1, 4}};
    for (const auto& c : cycles) {
        const int sum = at(c[0], c[1]) + at(c[1], c[2]) + at(c[2], c[3]) + at(c[3], c[4]) + at(c[4], c[0]);
        best = std::max(best, (sum + 1) / 2);
    }
    return best;
}

}  // namespace t2t
