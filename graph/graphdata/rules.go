package graphdata

// The rules of [Load], [Collect] and [Build], as problems name them, and what breaks
// each. Those of the first four are close to the classes of faults that an update
// service can be configured not to tolerate.
const (
	ruleRead             = "read"              // a file or directory that there must be is missing or cannot be read
	ruleInvalidExtension = "invalid-extension" // a file whose extension is not .yaml is not read
	ruleMissingExtension = "missing-extension" // a file without an extension is not read
	ruleYAML             = "yaml"              // a file is not YAML, or empty

	ruleDirectory      = "directory"       // a directory if there should be files alone
	ruleBelow          = "below-directory" // a file that is not read, since it lies in a directory below
	ruleDocuments      = "documents"       // a file with more than one YAML document
	ruleAlias          = "alias"           // an alias of YAML
	ruleLimit          = "limit"           // a limit is passed
	ruleSchema         = "schema"          // the schema version is not one that is understood
	ruleSchemaNewer    = "schema-newer"    // the schema version is newer than what is understood
	ruleRaw            = "raw-metadata"    // raw/metadata.json is not an object of objects of strings
	ruleType           = "type"            // a value has another type than its key wants
	ruleDuplicateKey   = "duplicate-key"   // a key is there twice
	ruleUnknownKey     = "unknown-key"     // a key is not known
	ruleRequired       = "required"        // a key that must be there is missing, or its value is empty
	ruleNotString      = "not-string"      // a text without quotes is something else to other readers of YAML
	ruleVersion        = "version"         // a version is not SemVer
	ruleFromEmpty      = "from-empty"      // the expression of a blocked edge is empty
	ruleFrom           = "from"            // the expression of a blocked edge does not compile, or means something else to the update service
	rulePartialRisk    = "partial-risk"    // a blocked edge has some keys of a risk, but not all
	ruleDropKey        = "drop-key"        // a blocked edge without a risk has a key that makes the update service ignore it
	ruleRuleType       = "rule-type"       // a matching rule is of an unknown type
	ruleRuleKey        = "rule-key"        // a matching rule lacks its query, or has one that it should not have
	ruleSuggestionName = "suggestion-name" // a file of build-suggestions is not named for a minor

	ruleRelease        = "release"         // a release cannot be read
	ruleReleaseVersion = "release-version" // a release has, or names, what is not SemVer
	ruleMismatch       = "mismatch"        // several images claim one version
	ruleUnknownEdit    = "unknown-edit"    // the metadata of a release add or remove an update of a version that there is not
	ruleCycle          = "cycle"           // updates lead back to where they began
)
