// Commands that the sandbox cannot let work: programs that need rights or sockets of the host, and programs that cannot be
// executed in it at all. They would refuse every release. Warnings: an option of theirs may do without.

import type { ConfigFile } from './config-schema.js';
import { defaultPlaces } from './config-values.js';
import { at, type Finding, type Group, group, list, valuesAt } from './findings.js';
import { slashed } from './hook-rules.js';
import type { HostLook } from './tolerated-rules.js';

/** Commands by their place, and whether `sandbox: off` may stand there. */
const places = [
  ['bundles.*.checks.*', 'run', false],
  ['workers.*.canary', 'run', false],
  ['workers.*.canary', 'start', false],
  ['workers.*.canary', 'probe', false],
  ['workers.*.load', 'run', true],
  ['workers.*.probe', 'run', true],
] as const;

export function* sandboxWarnings(file: ConfigFile, look: HostLook | undefined): Generator<Finding> {
  if (file.sandbox === 'off') return;
  for (const [place, key, mayBeOff] of places) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const hook = group(value);
      const [program] = list(hook[key]);
      if (typeof program !== 'string' || hook['sandbox'] === 'off') continue;
      const why = whyItFails(program, hook) ?? whyNotExecuted(program, hook, { file, look });
      if (why === undefined) continue;
      const remedy = mayBeOff ? 'give it `sandbox: off`' : 'it belongs into `load`, with `sandbox: off`';
      yield at([...path, key, 0], `${program}: ${why}; ${remedy}`);
    }
  }
}

const netAdmin = /^(nft|ebtables|arptables|ipset|conntrack|tc|bridge|ipvsadm|ip6?tables(-.*)?)$/;
const kernel = /^(sysctl|modprobe|insmod|rmmod|mount|umount|swapon|swapoff)$/;
const bus =
  /^(systemctl|busctl|loginctl|resolvectl|networkctl|hostnamectl|timedatectl|service|reboot|shutdown)$/;

/** @returns why a program cannot do its work in the sandbox, by its name */
function whyItFails(program: string, hook: Group): string | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1);
  if (netAdmin.test(name)) return 'the sandbox has no right to the network configuration of the kernel';
  // With the host's network it can at least show what is there.
  if (name === 'ip' && hook['network'] !== true)
    return 'the sandbox has a network of its own, and no right to that of the host';
  if (kernel.test(name)) return 'the sandbox has no right to change the kernel';
  const seesRun = shownTo(hook).some((path) => path === '/run' || path.startsWith('/run/'));
  return bus.test(name) && !seesRun ? 'the sandbox hides /run, with the sockets of systemd' : undefined;
}

function shownTo(hook: Group): string[] {
  return [...list(hook['binds']), ...list(hook['writable'])].filter((one) => typeof one === 'string');
}

const hiddenPlaces = ['/run', '/tmp', '/home', '/root'];

function whyNotExecuted(
  program: string,
  hook: Group,
  { file, look }: { readonly file: ConfigFile; readonly look: HostLook | undefined },
): string | undefined {
  if (!program.startsWith('/') || program.includes('{'))
    return hook['user'] === undefined ? look?.programForNobody?.(program) : undefined;
  const hidden = [...hiddenPlaces, file.state ?? defaultPlaces.state];
  const isHidden = hidden.some((place) => program.startsWith(slashed(place)));
  const isShown = shownTo(hook).some((place) => slashed(program).startsWith(slashed(place)));
  if (isHidden && !isShown) return 'the sandbox hides it (`binds` would show it)';
  return hook['user'] === undefined ? look?.programForNobody?.(program) : undefined;
}
