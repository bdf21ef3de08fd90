//go:build race

package limittest

// race is true where the race detector, which allocates much itself, is on.
const race = true
