package upgradeconfig

// What the tests of package upgradeconfig_test use.
var (
	InProgress     = inProgress
	ReadInProgress = readInProgress
)
