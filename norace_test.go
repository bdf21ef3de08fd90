//go:build !race

package clusterupdate_test

const raceEnabled = false
