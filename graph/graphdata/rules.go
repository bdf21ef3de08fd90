package graphdata

import "slices"

// Rule is a rule of a tree that a [Problem] breaks.
type Rule struct {
	Name string // stable
	Text string // what is wrong, for people
}

// Rules returns the rules of [Load], [Collect] and [Build], in an order that is the same each time.
func Rules() []Rule { return slices.Clone(loadRules) }

// The names of the rules. Those of the first four are near the classes of
// faults that an update service can be told not to tolerate.
const (
	ruleRead             = "read"
	ruleInvalidExtension = "invalid-extension"
	ruleMissingExtension = "missing-extension"
	ruleYAML             = "yaml"

	ruleDirectory      = "directory"
	ruleBelow          = "below-directory"
	ruleDocuments      = "documents"
	ruleAlias          = "alias"
	ruleLimit          = "limit"
	ruleSchema         = "schema"
	ruleSchemaNewer    = "schema-newer"
	ruleRaw            = "raw-metadata"
	ruleType           = "type"
	ruleDuplicateKey   = "duplicate-key"
	ruleUnknownKey     = "unknown-key"
	ruleRequired       = "required"
	ruleNotString      = "not-string"
	ruleVersion        = "version"
	ruleFromEmpty      = "from-empty"
	ruleFrom           = "from"
	rulePartialRisk    = "partial-risk"
	ruleDropKey        = "drop-key"
	ruleRuleType       = "rule-type"
	ruleRuleKey        = "rule-key"
	ruleSuggestionName = "suggestion-name"

	ruleRelease        = "release"
	ruleReleaseVersion = "release-version"
	ruleMismatch       = "mismatch"
	ruleUnknownEdit    = "unknown-edit"
	ruleCycle          = "cycle"
)

var loadRules = []Rule{
	{ruleRead, "a file or directory that there must be is missing or cannot be read"},
	{ruleInvalidExtension, "a file whose extension is not .yaml is not read"},
	{ruleMissingExtension, "a file without an extension is not read"},
	{ruleYAML, "a file is not YAML, or empty"},
	{ruleDirectory, "a directory where there should be files alone"},
	{ruleBelow, "a file that is not read, since it lies in a directory below"},
	{ruleDocuments, "a file with more than one YAML document"},
	{ruleAlias, "an alias of YAML"},
	{ruleLimit, "a limit is passed"},
	{ruleSchema, "the schema version is not one that is understood"},
	{ruleSchemaNewer, "the schema version is newer than what is understood"},
	{ruleRaw, "raw/metadata.json is not an object of objects of strings"},
	{ruleType, "a value has another type than its key wants"},
	{ruleDuplicateKey, "a key is there twice"},
	{ruleUnknownKey, "a key is not known"},
	{ruleRequired, "a key that must be there is missing, or its value is empty"},
	{ruleNotString, "a text without quotes is something else to other readers of YAML"},
	{ruleVersion, "a version is not SemVer"},
	{ruleFromEmpty, "the expression of a blocked edge is empty"},
	{ruleFrom, "the expression of a blocked edge does not compile, or means something else to the update service"},
	{rulePartialRisk, "a blocked edge has some keys of a risk, but not all"},
	{ruleDropKey, "a blocked edge without a risk has a key that makes the update service ignore it"},
	{ruleRuleType, "a matching rule is of an unknown type"},
	{ruleRuleKey, "a matching rule lacks its query, or has one that it should not have"},
	{ruleSuggestionName, "a file of build-suggestions is not named for a minor"},

	{ruleRelease, "a release cannot be read"},
	{ruleReleaseVersion, "a release has, or names, what is not SemVer"},
	{ruleMismatch, "several images claim one version"},
	{ruleUnknownEdit, "the metadata of a release add or remove an update of a version that there is not"},
	{ruleCycle, "updates lead back to where they began"},
}
