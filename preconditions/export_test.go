package preconditions

// What the tests of package preconditions_test use.
var (
	ParseVersion = parseVersion
	DecodePods   = decodePods
)
