package upgradeconfig

// What the tests of package upgradeconfig_test use.
var (
	InProgress     = inProgress
	ReadInProgress = readInProgress
)

func (c *Config) CheckInterval() error { return c.checkInterval() }
func (c *Config) CheckSource() error   { return c.checkSource() }
