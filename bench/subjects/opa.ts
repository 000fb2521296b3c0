// OPA's bundle plugin: a bundle over HTTP, loaded, activated and kept on the disk by a server that ends then. It knows data and policies
// only, so the tree is one JSON document: the text of each file by its path.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measured, shell } from '../measure/measured-program.js';
import type { Act, Ready, Subject } from './subject.js';
import { webNeed } from './subject.js';

// It would ask its makers for a newer version.
const run = [
  'opa run --server --skip-version-check --addr "unix://$1/socket" --config-file "$1/opa.json" 2>"$1/log" & opa=$!',
  'until grep -q "activated successfully" "$1/log"; do kill -0 $opa; sleep 0.02; done',
  'kill $opa; wait $opa || true; sync -f "$1"',
].join('; ');

export const opa: Subject = {
  name: 'OPA',
  needs: [{ program: 'opa', debianPackage: 'opa (not of Debian: any on the PATH)' }, webNeed],
  note: '`opa run` until its bundle is active and kept, over HTTP by nginx; nobody signed it, it keeps all in memory, an update is all bytes again',
  setUp: async ({ directory, first, second, web }) => {
    const build = (name: string, source: string) => {
      const data = join(directory, name);
      mkdirSync(data);
      writeFileSync(join(data, 'data.json'), JSON.stringify(textsOf(source)));
      const bundle = join(directory, `${name}.tar.gz`);
      return measured(['opa', 'build', '--bundle', data, '--output', bundle], { notes: directory });
    };
    const load =
      (name: string): Act =>
      (home) => {
        const place = join(home, name);
        mkdirSync(place);
        writeFileSync(join(place, 'opa.json'), JSON.stringify(configOf(place, web.url, name)));
        return web.counted(() => measured(shell(run, place), { notes: place }));
      };
    const published = await build('first', first);
    const ready: Ready = {
      acts: { publish: async () => published, 'first sync': load('first'), update: load('second') },
      publishSecond: async () => {
        await build('second', second);
      },
      [Symbol.asyncDispose]: async () => undefined,
    };
    return ready;
  },
};

function textsOf(tree: string): Readonly<Record<string, string>> {
  const files = readdirSync(tree, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(tree.length + 1), readFileSync(path, 'utf8')];
    }),
  );
}

function configOf(place: string, url: string, name: string): object {
  return {
    persistence_directory: join(place, 'kept'),
    services: { web: { url } },
    bundles: {
      policy: {
        service: 'web',
        resource: `opa/${name}.tar.gz`,
        persist: true,
        size_limit_bytes: 4e9,
        polling: { min_delay_seconds: 3600, max_delay_seconds: 3600 },
      },
    },
  };
}
