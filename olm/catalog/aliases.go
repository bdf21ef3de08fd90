package catalog

import "github.com/clusterupdate/clusterupdate/internal/yamljson"

// checkAliases refuses a YAML document with too many aliases, or one that they
// expand to more than a number of bytes.
func checkAliases(text []byte, maxAliases int, maxBytes int64) error {
	count, size, err := yamljson.MeasureAliases(text, maxBytes)
	switch {
	case err != nil:
		return yamlFault(err) // rather than convert what cannot be counted
	case count > maxAliases:
		return &LimitError{Limit: "MaxAliases", Max: int64(maxAliases), What: "YAML aliases in a document"}
	case count > 0 && size > maxBytes:
		return &LimitError{Limit: "MaxDocumentBytes", Max: maxBytes, What: "bytes in a document after the expansion of aliases"}
	}
	return nil
}
