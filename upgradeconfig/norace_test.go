//go:build !race

package upgradeconfig_test

const raceEnabled = false
