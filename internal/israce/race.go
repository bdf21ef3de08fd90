//go:build race

// Package israce tells tests whether the race detector is on.
package israce

// Enabled reports that the race detector is on, which makes tests slower and
// allocate more. What a test has in numbers may be less under it; what it checks
// stays.
const Enabled = true
