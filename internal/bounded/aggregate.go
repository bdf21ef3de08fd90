package bounded

// maxText is how many bytes the text of several errors may have.
const maxText = 32 << 10

// Aggregate joins errors as the conditions of OpenShift show them: one as it is, several
// in brackets and separated by
// commas, equal texts once; what passes 32 KiB is counted. Without any it returns nil. errors.Is and errors.As
// find each of them.
func Aggregate(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return list(errs)
}

type list []error

func (e list) Error() string {
	var texts []string
	seen := make(map[string]bool)
	for _, err := range e {
		if text := err.Error(); !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + Join(texts, ", ", maxText-2) + "]"
}

func (e list) Unwrap() []error { return e }
