// Warnings for commands that fail in the sandbox and would refuse every release: programs that need rights or sockets of the
// host, and programs that the sandbox cannot execute. Only warnings, because options of a program may avoid the conflict.

import type { ConfigFile } from './config-schema.js';
import { defaultPlaces } from './config-values.js';
import { asGroup, asList, at, type Finding, type Group, valuesAt } from './findings.js';
import { withFinalSlash } from './hook-rules.js';
import type { HostFactSource } from './tolerated-rules.js';

/** Paths of commands, with their key and whether `sandbox: off` is allowed there. */
const places = [
  ['bundles.*.checks.*', 'run', false],
  ['workers.*.canary', 'run', false],
  ['workers.*.canary', 'start', false],
  ['workers.*.canary', 'probe', false],
  ['workers.*.load', 'run', true],
  ['workers.*.probe', 'run', true],
] as const;

/**
 * Yields a warning at each command that would probably fail in the sandbox; none where `sandbox` is off, for the file
 * or the command.
 * @param hostFacts undefined: programs are judged by name only, and not by whether the sandbox can execute them
 */
export function* sandboxWarnings(
  file: ConfigFile,
  hostFacts: HostFactSource | undefined,
): Generator<Finding> {
  if (file.sandbox === 'off') return;
  for (const [place, key, canRunUnconfined] of places) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const hook = asGroup(value);
      const [program] = asList(hook[key]);
      if (typeof program !== 'string' || hook['sandbox'] === 'off') continue;
      const why =
        findSandboxConflict(program, hook) ?? findExecutionProblem(program, hook, { file, hostFacts });
      if (why === undefined) continue;
      const remedy = canRunUnconfined
        ? 'give it `sandbox: off`'
        : 'it belongs into `load`, with `sandbox: off`';
      yield at([...path, key, 0], `${program}: ${why}; ${remedy}`);
    }
  }
}

const netAdmin = /^(nft|ebtables|arptables|ipset|conntrack|tc|bridge|ipvsadm|ip6?tables(-.*)?)$/;
const kernel = /^(sysctl|modprobe|insmod|rmmod|mount|umount|swapon|swapoff)$/;
const bus =
  /^(systemctl|busctl|loginctl|resolvectl|networkctl|hostnamectl|timedatectl|service|reboot|shutdown)$/;

/** @returns why a program with this name fails in the sandbox; undefined if no reason is known */
function findSandboxConflict(program: string, hook: Group): string | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (netAdmin.test(name)) return 'the sandbox has no right to the network configuration of the kernel';
  // With the network of the host the command can at least display the configuration.
  if (name === 'ip' && hook['network'] !== true)
    return 'the sandbox has a network of its own, and no right to that of the host';
  if (kernel.test(name)) return 'the sandbox has no right to change the kernel';
  const seesRun = pathsShownTo(hook).some((path) => path === '/run' || path.startsWith('/run/'));
  return bus.test(name) && !seesRun ? 'the sandbox hides /run, with the sockets of systemd' : undefined;
}

function pathsShownTo(hook: Group): string[] {
  return [...asList(hook['binds']), ...asList(hook['writable'])].filter((one) => typeof one === 'string');
}

const hiddenPlaces = ['/run', '/tmp', '/home', '/root'];

function findExecutionProblem(
  program: string,
  hook: Group,
  { file, hostFacts }: { readonly file: ConfigFile; readonly hostFacts: HostFactSource | undefined },
): string | undefined {
  if (!program.startsWith('/') || program.includes('{'))
    return hook['user'] === undefined ? hostFacts?.programForUnprivilegedUser?.(program) : undefined;
  const hidden = [...hiddenPlaces, file.state ?? defaultPlaces.state];
  const isHidden = hidden.some((place) => program.startsWith(withFinalSlash(place)));
  const isShown = pathsShownTo(hook).some((place) =>
    withFinalSlash(program).startsWith(withFinalSlash(place)),
  );
  if (isHidden && !isShown) return 'the sandbox hides it (`binds` would show it)';
  return hook['user'] === undefined ? hostFacts?.programForUnprivilegedUser?.(program) : undefined;
}
