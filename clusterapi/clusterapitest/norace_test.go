//go:build !race

package clusterapitest_test

const raceEnabled = false
