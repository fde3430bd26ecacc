package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// What functions of the standard library, and of a few others, do. A name is
// "Func" or "Type.Method"; "*" stands for all functions, "Type.*" for all methods.
var effects = []struct {
	pkg, rule string
	names     []string
	except    []string
}{
	{pkg: "time", rule: ruleClock, names: words("Now Since Until Sleep After AfterFunc NewTimer NewTicker Tick")},

	{pkg: "math/rand", rule: ruleRandom, names: words("*"), except: words("New NewSource NewZipf")},
	{pkg: "math/rand/v2", rule: ruleRandom, names: words("*"), except: words("New NewPCG NewChaCha8 NewZipf")},
	{pkg: "crypto/rand", rule: ruleRandom, names: words("*")},
	{pkg: "hash/maphash", rule: ruleRandom, names: words("MakeSeed")},
	{pkg: "github.com/google/uuid", rule: ruleRandom, names: words("New NewString NewRandom NewRandomFromReader NewUUID NewV6 NewV7 NewDCEGroup NewDCEPerson NewDCESecurity")},
	{pkg: "github.com/gofrs/uuid", rule: ruleRandom, names: words("NewV1 NewV4 NewV6 NewV7")},
	{pkg: "github.com/gofrs/uuid/v5", rule: ruleRandom, names: words("NewV1 NewV4 NewV6 NewV7")},
	{pkg: "github.com/rs/xid", rule: ruleRandom, names: words("New")},
	{pkg: "github.com/oklog/ulid/v2", rule: ruleRandom, names: words("Make")},
	{pkg: "github.com/segmentio/ksuid", rule: ruleRandom, names: words("New NewRandom")},

	{pkg: "os", rule: ruleIO, names: words("* File.* Root.* Process.*"),
		except: words("IsExist IsNotExist IsPermission IsTimeout IsPathSeparator Expand NewSyscallError Getpagesize")},
	{pkg: "io/ioutil", rule: ruleIO, names: words("ReadDir ReadFile TempDir TempFile WriteFile")},
	{pkg: "os/exec", rule: ruleIO, names: words("LookPath Cmd.Run Cmd.Start Cmd.Output Cmd.CombinedOutput Cmd.Wait")},
	{pkg: "os/user", rule: ruleIO, names: words("*")},
	{pkg: "path/filepath", rule: ruleIO, names: words("Abs EvalSymlinks Glob Walk WalkDir")},
	{pkg: "io/fs", rule: ruleIO, names: words("Glob ReadDir ReadFile Stat WalkDir")},
	{pkg: "net", rule: ruleIO, names: words("Dial DialTimeout DialIP DialTCP DialUDP DialUnix Listen ListenIP ListenPacket ListenTCP ListenUDP ListenUnix ListenMulticastUDP LookupAddr LookupCNAME LookupHost LookupIP LookupMX LookupNS LookupPort LookupSRV LookupTXT Interfaces InterfaceAddrs ResolveIPAddr ResolveTCPAddr ResolveUDPAddr Dialer.* ListenConfig.* Resolver.*")},
	{pkg: "net/http", rule: ruleIO, names: words("Get Head Post PostForm ListenAndServe ListenAndServeTLS Serve ServeTLS Client.* Transport.RoundTrip Server.*")},
	{pkg: "net/smtp", rule: ruleIO, names: words("* Client.*"), except: words("PlainAuth CRAMMD5Auth")},
	{pkg: "database/sql", rule: ruleIO, names: words("Open DB.* Conn.* Tx.* Stmt.* Rows.Next Row.Scan"), except: words("DB.Stats DB.Driver")},
	{pkg: "github.com/jmoiron/sqlx", rule: ruleIO, names: words("Open Connect ConnectContext MustConnect MustOpen Get GetContext Select SelectContext MustExec MustExecContext NamedExec NamedExecContext NamedQuery NamedQueryContext DB.* Tx.* Conn.* Stmt.* NamedStmt.*"),
		except: words("DB.Rebind DB.BindNamed DB.DriverName Tx.Rebind Tx.BindNamed Tx.DriverName")},
	{pkg: "syscall", rule: ruleIO, names: words("*"), except: words("ByteSliceFromString BytePtrFromString StringByteSlice")},
}

func words(s string) []string { return strings.Fields(s) }

// effectOf returns what a function does by the tables, if anything.
func effectOf(fn *types.Func) (rule string, ok bool) {
	if fn.Pkg() == nil {
		return "", false
	}
	name := nameOf(fn)
	all := "*"
	if typ, _, method := strings.Cut(name, "."); method {
		all = typ + ".*"
	}
	for _, e := range effects {
		if e.pkg == fn.Pkg().Path() && (slices.Contains(e.names, name) || fn.Exported() && slices.Contains(e.names, all)) && !slices.Contains(e.except, name) {
			return e.rule, true
		}
	}
	return "", false
}

// effectsAt returns the effects that a node has itself: a mention of a function of
// the tables, a write to a package variable, a call of a function that has effects.
func (c *checker) effectsAt(n ast.Node) (found []effect) {
	switch n := n.(type) {
	case *ast.Ident:
		switch obj := c.TypesInfo.Uses[n].(type) {
		case *types.Func:
			if rule, ok := effectOf(obj.Origin()); ok {
				found = append(found, effect{rule, path.Base(strings.TrimSuffix(obj.Pkg().Path(), "/v2")) + "." + nameOf(obj.Origin()), c.place(n.Pos()), ""})
			}
		case *types.Var:
			if obj.Pkg() != nil && obj.Pkg().Path() == "crypto/rand" && obj.Name() == "Reader" {
				found = append(found, effect{ruleRandom, "rand.Reader", c.place(n.Pos()), ""})
			}
		}
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, l := range n.Lhs {
				found = append(found, c.globalWrite(l)...)
			}
		}
	case *ast.IncDecStmt:
		found = append(found, c.globalWrite(n.X)...)
	case *ast.CallExpr:
		return c.effectsOfCall(n)
	}
	return found
}

func (c *checker) effectsOfCall(call *ast.CallExpr) (found []effect) {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := c.TypesInfo.Uses[id].(*types.Builtin); ok && (b.Name() == "delete" || b.Name() == "clear") && len(call.Args) > 0 {
			return c.globalWrite(call.Args[0])
		}
	}
	fn := c.callee(call)
	if fn == nil || fn.Pkg() == nil {
		return nil
	}
	if changes(fn) {
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && fn.Signature().Recv() != nil {
			return c.globalWrite(sel.X)
		}
		if len(call.Args) > 0 {
			if u, ok := ast.Unparen(call.Args[0]).(*ast.UnaryExpr); ok && u.Op == token.AND {
				return c.globalWrite(u.X)
			}
		}
		return nil
	}
	if c.workflow[fn] {
		return nil // its own findings say it
	}
	for _, e := range c.factOf(fn).Effects {
		e.By = fn.Name()
		found = append(found, e)
	}
	return found
}

// changes reports whether a method of sync or sync/atomic changes its receiver, or
// what its first argument points to.
func changes(fn *types.Func) bool {
	typ, method, ok := strings.Cut(nameOf(fn), ".")
	if !ok {
		typ, method = "", typ
	}
	switch fn.Pkg().Path() {
	case "sync/atomic":
		return slices.ContainsFunc(words("Add Store Swap CompareAndSwap And Or"), func(p string) bool { return strings.HasPrefix(method, p) })
	case "sync":
		return typ == "Map" && slices.Contains(words("Store Delete Swap LoadOrStore LoadAndDelete CompareAndSwap CompareAndDelete Clear"), method) ||
			typ == "Once" && method == "Do"
	}
	return false
}

// globalWrite returns the write to a package variable that an assignment to e is.
func (c *checker) globalWrite(e ast.Expr) []effect {
	if v := c.rootOf(e); v != nil && isGlobal(v) {
		return []effect{{ruleGlobal, "a write to " + v.Name(), c.place(e.Pos()), ""}}
	}
	return nil
}

// rootOf returns the variable that holds what e leads to: x of x.f[i].
func (c *checker) rootOf(e ast.Expr) *types.Var {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return c.varOf(x)
		case *ast.SelectorExpr:
			if v := c.varOf(x.Sel); v != nil && isGlobal(v) {
				return v // of another package
			}
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// instead says what to write.
var instead = map[string]string{
	ruleClock:  "a replay finds another time; use durable.Now and durable.Sleep, or do it in a step",
	ruleRandom: "a replay draws another value; use durable.Rand or durable.NewID, or do it in a step",
	ruleIO:     "a replay does it again, and may find something else; do it in a step",
	ruleGlobal: "a replay writes it again, and another process does not have it; keep state in the results of steps",
}

// reportEffects reports the effects of a piece of workflow code.
func (c *checker) reportEffects(n ast.Node) {
	for _, e := range c.effectsAt(n) {
		what := e.What
		if e.By != "" {
			what = fmt.Sprintf("%s, which leads to %s (%s),", e.By, e.What, e.Where)
		}
		c.report(e.Rule, n, "%s in workflow code outside of a step: %s", what, instead[e.Rule])
	}
}
