package manifest

import (
	"encoding/json"
	"errors"
	"fmt"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/clusterupdate/clusterupdate/internal/limit"
	"github.com/clusterupdate/clusterupdate/internal/yamljson"
)

// maxImagesDepth is how deep image-references may be nested. A real one is 5
// levels deep.
const maxImagesDepth = 100

// decodeImages reads an image-references file, JSON or YAML: the image stream
// that names the images of a release. Tags that are not a Docker image are
// ignored.
func decodeImages(data []byte, version string, limits Limits) (map[string]string, error) {
	budget := limits.budget()
	if !json.Valid(data) {
		if err := budget.Values.Check(int64(yamljson.MayBegin(data))); err != nil {
			return nil, fmt.Errorf("unmarshal image-references: %w", err)
		}
		size, err := measure(string(data), limits.ExpandedSize)
		if over := budget.Aliases.Check(size.expanded()); over != nil {
			err = over
		}
		if err != nil {
			return nil, fmt.Errorf("unmarshal image-references: %w", err)
		}
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, fmt.Errorf("unmarshal image-references: %w", err)
		}
		data = converted
	}
	values, depth := limit.Shape(data)
	if err := budget.Values.Check(values); err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	if depth > maxImagesDepth {
		return nil, fmt.Errorf("unmarshal image-references: nested more than %d levels deep", maxImagesDepth)
	}
	gvk, err := serializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	want := schema.GroupVersionKind{Group: imagev1.GroupName, Version: "v1", Kind: "ImageStream"}
	if gvk.Kind == "" {
		return nil, errors.New("unmarshal image-references: Object 'Kind' is missing")
	}
	if *gvk != want {
		return nil, fmt.Errorf("image-references is a %s, not a v1 ImageStream", typeName(*gvk, want))
	}
	var stream imagev1.ImageStream
	if err := limit.JSON(data, &stream); err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &stream); err != nil {
		return nil, fmt.Errorf("unmarshal image-references: %w", err)
	}
	if stream.Name != version {
		return nil, fmt.Errorf("version from image-references (%s) differs from release-metadata (%s)", stream.Name, version)
	}
	images := make(map[string]string, len(stream.Spec.Tags))
	for _, tag := range stream.Spec.Tags {
		if tag.From != nil && tag.From.Kind == "DockerImage" {
			images[tag.Name] = tag.From.Name
		}
	}
	return images, nil
}

// typeName describes a type that is not the wanted one, so that the two differ: with
// its group if only that differs.
func typeName(gvk, want schema.GroupVersionKind) string {
	name := gvk.Version + " " + gvk.Kind
	switch {
	case gvk.Version == want.Version && gvk.Kind == want.Kind && gvk.Group == "":
		return name + " of the core group"
	case gvk.Group != "":
		return gvk.Group + "/" + name
	case gvk.Version == "":
		return gvk.Kind + " without an apiVersion"
	}
	return name
}
