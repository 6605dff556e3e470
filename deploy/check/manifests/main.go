// Checks Kubernetes manifests from standard input against the types of the API server: an unknown or repeated field, or a value of the
// wrong type, is an error. Kinds of other projects are named and passed over.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

// Groups whose types come with an operator, not with Kubernetes.
var foreign = []string{"monitoring.coreos.com/", "keda.sh/"}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func main() {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	seen := map[string]bool{}
	checked, passed, failed := 0, 0, 0
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if len(bytes.TrimSpace(withoutComments(document))) == 0 {
			continue
		}
		name, known, err := check(decoder, document, seen)
		switch {
		case err != nil:
			failed++
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		case known:
			checked++
		default:
			passed++
		}
	}
	fmt.Printf("%d manifests match the API, %d are of other projects, %d are wrong\n", checked, passed, failed)
	if failed > 0 || checked == 0 {
		os.Exit(1)
	}
}

// Whose manifest it is, and whether its kind is one of Kubernetes.
func check(decoder runtime.Decoder, document []byte, seen map[string]bool) (string, bool, error) {
	var head object
	if err := sigsyaml.Unmarshal(document, &head); err != nil {
		return "a manifest", false, err
	}
	name := head.Kind + " " + head.Metadata.Name
	if key := head.APIVersion + " " + name; seen[key] {
		return name, true, errors.New("is there twice")
	} else {
		seen[key] = true
	}
	for _, group := range foreign {
		if strings.HasPrefix(head.APIVersion, group) {
			return name, false, nil
		}
	}
	_, _, err := decoder.Decode(document, nil, nil)
	return name, true, err
}

func withoutComments(document []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(document) {
		if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) && !bytes.HasPrefix(line, []byte("---")) {
			kept = append(kept, line...)
		}
	}
	return kept
}
