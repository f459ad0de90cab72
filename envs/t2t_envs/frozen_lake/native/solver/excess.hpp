// A lower bound of a team's excess over the costs of its agents alone, computed from the excess of every pair.
#pragma once
#include <algorithm>

namespace t2t {

// The least that three agents pay beyond their shortest paths if their pairs pay a, b and c.
inline int triangle_excess(int a, int b, int c) { return std::max({a, b, c, (a + b + c + 1) / 2}); }

// The sum over the pairs that pay most, chosen greedily so that no agent is in two of them.
inline int matching_excess(const int* excess, int agents) {
    bool used[16] = {};
    for (int best = 0;;) {
        int top = 0, a = 0, b = 0;
        for (int j = 1; j < agents; ++j) {
            for (int i = 0; i < j; ++i) {
                const int own = excess[j * (j - 1) / 2 + i];
                if (!used[i] && !used[j] && own > top) top = own, a = i, b = j;
            }
        }
        if (top == 0) return best;
        best += top;
        used[a] = used[b] = true;
    }
}

// excess[pair_number(i, j)] is a lower bound of x_i + x_j, where x is the surplus of each agent. Returns a lower bound of the sum
// of all surpluses. For up to five agents it is the rounded-up optimum of the linear relaxation (which pairs, triangles and
// five-cycles attain), for more agents a greedy matching.
inline int excess_bound(const int* excess, int agents) {
    const int pairs = agents * (agents - 1) / 2;
    int largest = 0, total = 0;
    for (int p = 0; p < pairs; ++p) {
        largest = std::max(largest, excess[p]);
        total += excess[p];
    }
    if (largest == total || agents < 3) return largest;
    const int* e = excess;
    if (agents == 3) return triangle_excess(e[0], e[1], e[2]);
    if (agents > 5) return matching_excess(excess, agents);
    if (agents == 4) {
        const int best = std::max({e[0] + e[5], e[1] + e[4], e[3] + e[2]});
        return std::max({best, triangle_excess(e[0], e[1], e[2]), triangle_excess(e[0], e[3], e[4]),
                         triangle_excess(e[1], e[3], e[5]), triangle_excess(e[2], e[4], e[5])});
    }
    // A pair and the other three agents; the triangle bound covers their matchings too. For each pair, in the order of the pair
    // numbers 01 02 12 03 13 23 04 14 24 34, these are the pairs of the other three agents.
    constexpr unsigned char others[10][3] = {{5, 8, 9}, {4, 7, 9}, {3, 6, 9}, {2, 7, 8}, {1, 6, 8},
                                             {0, 6, 7}, {2, 4, 5}, {1, 3, 5}, {0, 3, 4}, {0, 1, 2}};
    int best = largest;
    for (int p = 0; p < 10; ++p) {
        best = std::max(best, e[p] + triangle_excess(e[others[p][0]], e[others[p][1]], e[others[p][2]]));
    }
    if ((total + 1) / 2 <= best) return best;
    constexpr unsigned char cycles[12][5] = {{0, 2, 5, 9, 6}, {0, 2, 8, 9, 3}, {0, 4, 5, 8, 6}, {0, 4, 9, 8, 1},
                                             {0, 7, 8, 5, 3}, {0, 7, 9, 5, 1}, {1, 2, 4, 9, 6}, {1, 2, 7, 9, 3},
                                             {1, 5, 4, 7, 6}, {1, 8, 7, 4, 3}, {3, 4, 2, 8, 6}, {3, 5, 2, 7, 6}};
    for (const auto& c : cycles) best = std::max(best, (e[c[0]] + e[c[1]] + e[c[2]] + e[c[3]] + e[c[4]] + 1) / 2);
    return best;
}

}  // namespace t2t
