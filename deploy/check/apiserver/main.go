// A Kubernetes API server on etcd, in one process on loopback, for `deploy/check/cluster`. There is no controller, no scheduler and no
// kubelet: it takes objects or refuses them, and nothing comes of them.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: memfleet-check-apiserver DIRECTORY")
		os.Exit(2)
	}
	arguments, err := prepare(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(arguments)
	os.Exit(cli.Run(command))
}

// Starts etcd, writes what the API server and its clients read into the directory, and returns the flags of the API server.
func prepare(directory string) ([]string, error) {
	store, err := startEtcd(filepath.Join(directory, "etcd"))
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	key := filepath.Join(directory, "accounts.key")
	if err := writeKey(key); err != nil {
		return nil, err
	}
	tokens := filepath.Join(directory, "tokens.csv")
	token := rand.Text()
	if err := os.WriteFile(tokens, []byte(token+",checker,1,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	kubeconfig := fmt.Sprintf(kubeconfigTemplate, port, token)
	if err := os.WriteFile(filepath.Join(directory, "kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"--etcd-servers=" + store,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + filepath.Join(directory, "certificates"),
		"--token-auth-file=" + tokens,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24",
		// Nobody makes the `default` account of a namespace that it would ask for.
		"--disable-admission-plugins=ServiceAccount",
	}, nil
}

// The certificate that the server makes for itself is in its folder, beside this file.
const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: check
contexts: [{ name: check, context: { cluster: check, user: check } }]
clusters: [{ name: check, cluster: { server: "https://127.0.0.1:%d", certificate-authority: certificates/apiserver.crt } }]
users: [{ name: check, user: { token: %q } }]
`

// Returns the address of the clients.
func startEtcd(directory string) (string, error) {
	configuration := embed.NewConfig()
	configuration.Dir = directory
	configuration.LogLevel = "error"
	// Nothing outlives the check.
	configuration.UnsafeNoFsync = true
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	configuration.ListenClientUrls, configuration.ListenPeerUrls = loopback, loopback
	server, err := embed.StartEtcd(configuration)
	if err != nil {
		return "", err
	}
	<-server.Server.ReadyNotify()
	return "http://" + server.Clients[0].Addr().String(), nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// The key that signs the tokens of service accounts.
func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	return os.WriteFile(path, block, 0o600)
}
