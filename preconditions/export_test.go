package preconditions

// DecodePods is what the tests of package preconditions_test use.
var DecodePods = decodePods
