package rules

// DecodePods is what the tests of package rules_test use.
var DecodePods = decodePods
