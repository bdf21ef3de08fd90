package mcp

import "strings"

// SameContent reports that two rendered configs, by their names, were made from the
// same content: the digits at the end of the names agree, whatever the pools. It is
// a hint, as for a canary pool that should have the content of worker; nodes are
// updated by full names alone.
func SameContent(a, b string) bool {
	x, y := contentHash(a), contentHash(b)
	return x != "" && x == y
}

// contentHash is the hash in "rendered-<pool>-<32 lower-case hex digits>"; ""
// if name is not of that form.
func contentHash(name string) string {
	rest, ok := strings.CutPrefix(name, "rendered-")
	i := strings.LastIndexByte(rest, '-')
	if !ok || i <= 0 {
		return ""
	}
	hash := rest[i+1:]
	if len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash
}
