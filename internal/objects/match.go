package objects

import (
	"slices"
)

// matchElements finds, for each element of after, the element of before that
// it was: an index, or -1 for a new one. keys are the list-map keys; without
// them, or where they are missing or not unique, elements are recognised by
// value, then by position.
func matchElements(before, after []any, keys []string) []int {
	at, okBefore := index(before, keys)
	_, okAfter := index(after, keys)
	if !okBefore || !okAfter {
		return align(before, after)
	}
	out := make([]int, len(after))
	for i, e := range after {
		j, ok := at[ElementPath(e, keys)]
		if !ok {
			j = -1
		}
		out[i] = j
	}
	return out
}

// index maps elements by key; false without keys, when an element has none of
// them, or when two have the same.
func index(list []any, keys []string) (map[string]int, bool) {
	at := make(map[string]int, len(list))
	for i, e := range list {
		m, _ := e.(map[string]any)
		if !slices.ContainsFunc(keys, func(k string) bool { _, ok := m[k]; return ok }) {
			return nil, false
		}
		key := ElementPath(m, keys)
		if _, twice := at[key]; twice {
			return nil, false
		}
		at[key] = i
	}
	return at, len(keys) > 0
}

// align matches elements without keys: unchanged ones wherever they went, then
// the others in their order. When some were added or removed, the order alone
// does not say which are the same: there the most similar are.
func align(before, after []any) []int {
	out := make([]int, len(after))
	// What is equal at both ends needs no search: long lists mostly grow at
	// one of them.
	start := 0
	for start < min(len(before), len(after)) && Equal(before[start], after[start]) {
		out[start] = start
		start++
	}
	end := 0
	for end < min(len(before), len(after))-start && Equal(before[len(before)-1-end], after[len(after)-1-end]) {
		out[len(after)-1-end] = len(before) - 1 - end
		end++
	}
	alignRest(before[start:len(before)-end], after[start:len(after)-end], out[start:len(after)-end])
	for i := start; i < len(after)-end; i++ {
		if out[i] >= 0 {
			out[i] += start
		}
	}
	return out
}

// alignRest fills out with the matches of lists whose ends differ.
func alignRest(before, after []any, out []int) {
	unchanged := make(map[string][]int)
	for j, e := range before {
		key := text(e)
		unchanged[key] = append(unchanged[key], j)
	}
	taken := make([]bool, len(before))
	var restAfter, restBefore []int
	for i, e := range after {
		key := text(e)
		if js := unchanged[key]; len(js) > 0 {
			out[i], taken[js[0]] = js[0], true
			unchanged[key] = js[1:]
			continue
		}
		out[i] = -1
		restAfter = append(restAfter, i)
	}
	for j := range before {
		if !taken[j] {
			restBefore = append(restBefore, j)
		}
	}
	const tooMany = 1 << 16
	if len(restAfter) == len(restBefore) || len(restAfter)*len(restBefore) > tooMany {
		for k := range min(len(restAfter), len(restBefore)) {
			out[restAfter[k]] = restBefore[k]
		}
		return
	}
	bestPairs(before, after, restBefore, restAfter, out)
}

// bestPairs matches the remaining elements in order such that the sum of their
// similarities is greatest.
func bestPairs(before, after []any, bs, as []int, out []int) {
	sum := make([][]int, len(as)+1)
	for i := range sum {
		sum[i] = make([]int, len(bs)+1)
	}
	score := make([][]int, len(as))
	for i := len(as) - 1; i >= 0; i-- {
		score[i] = make([]int, len(bs))
		for j := len(bs) - 1; j >= 0; j-- {
			score[i][j] = similarity(before[bs[j]], after[as[i]])
			sum[i][j] = max(sum[i+1][j], sum[i][j+1], sum[i+1][j+1]+score[i][j])
		}
	}
	for i, j := 0, 0; i < len(as) && j < len(bs); {
		switch sum[i][j] {
		case sum[i+1][j+1] + score[i][j]:
			out[as[i]] = bs[j]
			i, j = i+1, j+1
		case sum[i+1][j]:
			i++
		default:
			j++
		}
	}
}

// similarity counts equal fields; any two elements have a little in common.
func similarity(a, b any) int {
	const each = 8
	n := 1
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	if !aok || !bok {
		return n
	}
	for k, av := range am {
		if bv, ok := bm[k]; ok && av != nil && Equal(av, bv) {
			n += each
		}
	}
	return n
}
