package upgradeconfig

// What the tests of package upgradeconfig_test use.
var (
	InProgress     = upgrading
	ReadInProgress = readInProgress
)

func ParseConfig(data []byte) (*Config, error) {
	c := &Config{}
	return c, decodeConfig(data, c)
}

func (c *Config) CheckInterval() error { return c.checkInterval() }
func (c *Config) CheckSource() error   { return c.checkSource() }
