// Checks docker-compose.yml the way `docker compose` reads it: every profile loads and starts exactly the services meant, images are
// pinned, and what is mounted from the repository exists. Run from the top of the repository. With the name of a profile it prints that
// profile's services as JSON instead, every variable filled in.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

var fleet = []string{
	"consolidator", "constructor", "embedder", "gateway", "judge", "migrate", "model", "nats", "neo4j", "postgres", "refresher", "retriever",
}

// What each profile starts; the empty one is `docker compose up`.
var profiles = map[string][]string{
	"":              fleet,
	"single":        {"model", "single"},
	"observability": with(fleet, "grafana", "jaeger", "otel-collector", "prometheus"),
}

func main() {
	if len(os.Args) == 2 {
		show(os.Args[1])
		return
	}
	failed := false
	for profile, expected := range profiles {
		services, err := services(profile)
		if err == nil && !slices.Equal(services, expected) {
			err = fmt.Errorf("starts %v, not %v", services, expected)
		}
		name := profile
		if name == "" {
			name = "(none)"
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "profile %s: %v\n", name, err)
			continue
		}
		fmt.Printf("profile %s: %s\n", name, strings.Join(services, " "))
	}
	if failed {
		os.Exit(1)
	}
}

func show(profile string) {
	project, err := load(profile)
	if err == nil {
		var text []byte
		text, err = project.MarshalJSON()
		fmt.Println(string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(profile string) (*types.Project, error) {
	var chosen []string
	if profile != "" {
		chosen = append(chosen, profile)
	}
	options, err := cli.NewProjectOptions(
		[]string{"docker-compose.yml"},
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithDefaultProfiles(chosen...),
	)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

// The names of the services that a profile starts, in order; an error names what is wrong with any of them.
func services(profile string) ([]string, error) {
	project, err := load(profile)
	if err != nil {
		return nil, err
	}
	for _, service := range project.Services {
		if err := check(project, service); err != nil {
			return nil, fmt.Errorf("service %s: %w", service.Name, err)
		}
	}
	names := project.ServiceNames()
	slices.Sort(names)
	return names, nil
}

func check(project *types.Project, service types.ServiceConfig) error {
	_, tag, tagged := strings.Cut(service.Image, ":")
	if !tagged || tag == "latest" {
		return fmt.Errorf("image %q has no version", service.Image)
	}
	for _, volume := range service.Volumes {
		if volume.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(volume.Source); err != nil {
			return err
		}
	}
	for _, port := range service.Ports {
		if port.HostIP != "127.0.0.1" {
			return fmt.Errorf("port %d is published beyond loopback", port.Target)
		}
	}
	for _, secret := range service.Secrets {
		if _, err := os.Stat(project.Secrets[secret.Source].File); err != nil {
			return err
		}
	}
	return nil
}

func with(names []string, more ...string) []string {
	all := append(slices.Clone(names), more...)
	slices.Sort(all)
	return all
}
