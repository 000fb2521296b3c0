// packaging/kubernetes: the manifest matches the schemas of Kubernetes, and the commands of its containers run in order, as their
// users, in file systems with the layout of the pod.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { systemClock } from '../../../src/platform/time/clock.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';
import { readableCheckout } from '../../kit/sources/readable-checkout.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const manifest = join(projectRoot, 'packaging/kubernetes/writ.yaml');

interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly subPath?: string;
  readonly readOnly?: boolean;
}
interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly restartPolicy?: string;
  readonly readinessProbe?: { readonly exec: { readonly command: readonly string[] } };
  readonly startupProbe?: { readonly exec: { readonly command: readonly string[] } };
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly Mount[];
}
interface PodSpec {
  readonly securityContext: { readonly runAsNonRoot: boolean; readonly runAsUser: number };
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
}

const [configMap, deployment] = parseAllDocuments(fs.readFileSync(manifest, 'utf8'), { merge: true }).map(
  (document) => document.toJS() as Record<string, never>,
) as unknown as [
  { readonly data: Readonly<Record<string, string>> },
  { readonly spec: { readonly template: { readonly spec: PodSpec } } },
];
const pod = deployment.spec.template.spec;
const [directories, firstPolicy, agent] = pod.initContainers as [Container, Container, Container];

/** The schemas are in a package of PyPI. The variable has the folder of `pip --target`. */
const python = { ...process.env, PYTHONPATH: process.env['WRIT_TEST_PYTHONPATH'] ?? '' };
function needsSchemas(): { skip?: string } {
  if (process.env['WRIT_TEST_REQUIRE_REAL'] === '1') return {};
  try {
    execFileSync('python3', ['-c', 'import kubernetes_validate'], { env: python, stdio: 'ignore' });
    return {};
  } catch {
    return { skip: 'kubernetes-validate is not installed: python3 -m pip install kubernetes-validate' };
  }
}

const validate = `
import sys, yaml, kubernetes_validate
for resource in yaml.safe_load_all(open(sys.argv[1])):
    for version in sys.argv[2:]:
        kubernetes_validate.validate(resource, version, strict=True)
    print(resource["kind"])
`;
const validated = (path: string): string =>
  execFileSync('python3', ['-c', validate, path, '1.29', '1.37'], {
    env: python,
    encoding: 'utf8',
    stdio: 'pipe',
  });

describe('the manifest for Kubernetes', () => {
  it('matches the strict schemas of Kubernetes', needsSchemas(), () => {
    assert.equal(validated(manifest), 'ConfigMap\nDeployment\n');
    using dir = tempDir();
    const bent = dir.join('bent.yaml');
    fs.writeFileSync(bent, fs.readFileSync(manifest, 'utf8').replace('mountPath:', 'mountpath:'));
    assert.throws(() => validated(bent), /mountpath|mountPath/);
  });

  it('gives no container root, a writable root file system, or a privilege', () => {
    assert.equal(pod.securityContext.runAsNonRoot, true);
    assert.ok(pod.securityContext.runAsUser > 0);
    for (const { name, securityContext } of [...pod.initContainers, ...pod.containers])
      assert.deepEqual(
        securityContext,
        {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        name,
      );
    for (const { mountPath, readOnly } of pod.containers.flatMap(({ volumeMounts }) => volumeMounts))
      assert.equal(readOnly, true, mountPath);
  });
});

/** A fixed path, because the pod mounts a volume on /tmp, which would hide a checkout below it. */
const checkoutInside = '/opt/writ-checkout';

/** @returns the parent directories of a path in order, without the root */
const parentsOf = (path: string): string[] =>
  path === '/' || dirname(path) === '/' ? [] : [...parentsOf(dirname(path)), dirname(path)];

/** Only programs, the repository and the mounts of this container, on a read-only root. */
function laidOut(volumes: Readonly<Record<string, string>>, { volumeMounts }: Container): string[] {
  const { runAsUser } = pod.securityContext;
  const binds = volumeMounts.flatMap(({ name, subPath = '', mountPath, readOnly }) => [
    readOnly ? '--ro-bind' : '--bind',
    join(volumes[name] ?? assert.fail(name), subPath),
    mountPath,
  ]);
  const programs = ['/usr', process.execPath].flatMap((path) => ['--ro-bind', path, path]);
  const checkout = ['--ro-bind', readableCheckout(), checkoutInside];
  const links = ['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]);
  const places = [
    checkoutInside,
    process.execPath,
    '/srv',
    ...volumeMounts.map(({ mountPath }) => mountPath),
  ];
  // The image creates the parents of a mount, with access for all users.
  const folders = [...new Set(places.flatMap(parentsOf))].flatMap((path) => [
    '--perms',
    '0755',
    '--dir',
    path,
  ]);
  const root = [
    ...folders,
    ...programs,
    ...checkout,
    ...links,
    '--dev',
    '/dev',
    '--proc',
    '/proc',
    '--ro-bind',
    volumes['served'] ?? '',
    '/srv',
  ];
  const needed = [
    '--remount-ro',
    '/',
    '--cap-add',
    'CAP_SETUID',
    '--cap-add',
    'CAP_SETGID',
    '--die-with-parent',
    '--unshare-pid',
  ];
  const user = ['setpriv', `--reuid=${runAsUser}`, `--regid=${runAsUser}`, '--clear-groups'];
  return [...root, ...binds, ...needed, ...user];
}

function start(
  volumes: Readonly<Record<string, string>>,
  container: Container,
  line: readonly string[],
): ChildProcess {
  const [program = '', ...args] = line;
  const writ = [process.execPath, `${checkoutInside}/dist/writ/main.js`];
  const command = program === 'writ' ? [...writ, ...args] : [program, ...args];
  return spawn('bwrap', [...laidOut(volumes, container), ...command], {
    env: { PATH: '/usr/sbin:/usr/bin' },
    stdio: 'pipe',
  });
}

async function ended(
  child: ChildProcess,
): Promise<{ readonly code: number | null; readonly output: string }> {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can lay out the file systems of a pod' };

describe('the containers of the pod', { ...needs('bwrap', 'bubblewrap'), ...asRoot }, () => {
  it('activate a first policy, then the next ones, and are healthy', async () => {
    using dir = tempDir();
    fs.chmodSync(dir.path, 0o755);
    const repository = sampleRepository(dir, { clock: systemClock });
    const bundle = join(projectRoot, 'bundles/access');
    const tree = (): Record<string, string> => ({
      'policy.yaml': fs.readFileSync(join(bundle, 'policy.yaml'), 'utf8'),
      'policy.schema.json': fs.readFileSync(join(bundle, 'policy.schema.json'), 'utf8'),
    });
    await repository.publish(tree(), { bundle: 'access' });
    const volumes = {
      config: dir.join('config'),
      writ: dir.join('volume'),
      tmp: dir.join('tmp'),
      served: repository.directory,
    };
    for (const path of [volumes.config, volumes.writ, volumes.tmp]) fs.mkdirSync(path);
    // As an emptyDir: owned by root, writable by all users.
    for (const path of [volumes.writ, volumes.tmp]) fs.chmodSync(path, 0o777);
    const yaml = configMap.data['agent.yaml'] ?? '';
    fs.writeFileSync(
      join(volumes.config, 'agent.yaml'),
      yaml.replace(/^repository: .*/m, 'repository: file:///srv'),
    );
    fs.copyFileSync(repository.rootPath, join(volumes.config, 'root.json'));

    const made = await ended(start(volumes, directories, directories.command ?? []));
    assert.equal(made.code, 0, made.output);
    const healthy = (): Promise<{ code: number | null; output: string }> =>
      ended(start(volumes, agent, agent.readinessProbe?.exec.command ?? []));
    assert.notEqual((await healthy()).code, 0);
    const pulled = await ended(start(volumes, firstPolicy, ['writ', ...(firstPolicy.args ?? [])]));
    assert.equal(pulled.code, 0, pulled.output);
    assert.match(pulled.output, /generation 1 is verified and active/);

    const running = start(volumes, agent, ['writ', ...(agent.args ?? [])]);
    const stopped = ended(running);
    try {
      assert.deepEqual(agent.startupProbe?.exec.command, agent.readinessProbe?.exec.command);
      await until(async () => (await healthy()).code === 0);
      await until(() => fs.existsSync(join(volumes.writ, 'run/workers/access.sock')));
      await repository.publish({ ...tree(), note: 'two\n' }, { bundle: 'access' });
      const next = await ended(start(volumes, agent, ['writ', 'pull', '--config', '/etc/writ/agent.yaml']));
      assert.match(next.output, /generation 2/, next.output);
      const [service] = pod.containers as [Container];
      const seen = await ended(start(volumes, service, ['cat', '/var/lib/writ/policy/current/access/note']));
      assert.equal(seen.output, 'two\n');
    } finally {
      running.kill('SIGKILL');
      await stopped;
    }
  });
});
