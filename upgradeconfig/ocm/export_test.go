package ocm

// What the tests of package ocm_test use.
const (
	DefaultMaxBody     = defaultMaxBody
	DefaultMaxPolicies = defaultMaxPolicies
)

var StateOf = stateOf
