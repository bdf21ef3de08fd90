package merge

import (
	imagev1 "github.com/openshift/api/image/v1"
)

func imageStreamDefaults(s *imagev1.ImageStream) {
	for i := range s.Spec.Tags {
		setDefault(&s.Spec.Tags[i].ImportPolicy.ImportMode, imagev1.ImportModeLegacy)
	}
}

// imageStream adds tags and corrects where they come from; others stay.
func imageStream(existing, required *imagev1.ImageStream) error {
	existing.Spec.LookupPolicy = required.Spec.LookupPolicy
	existing.Spec.Tags = mergeKeyed(existing.Spec.Tags, required.Spec.Tags, true,
		func(t *imagev1.TagReference) string { return t.Name },
		func(into, from *imagev1.TagReference) { into.ImportPolicy, into.From = from.ImportPolicy, from.From })
	return nil
}
