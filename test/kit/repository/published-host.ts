// A host in this process that follows a publisher's repository on disk, to test commands of a publisher by their effect on a
// host. The host can be offline, or be served an older copy of the repository.
import * as fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { FakeClock } from '../clock/fake-clock.js';
import { fakeClock } from '../clock/fake-clock.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type TestHost, type TestHostOptions, testHost } from '../host/test-host.js';
import { type SampleRepository, sampleRepository } from './sample-repository.js';

export interface PublishedHost extends Disposable {
  readonly repository: SampleRepository;
  readonly host: TestHost;
  /** Clock of the publisher; the clock of the host is another one that starts at the same time. */
  readonly clock: FakeClock;
  /** Copies the current repository for `serveCopy`. */
  keepCopy(name: string): void;
  /** Serves the copy from now on, as an attacker with an old mirror does. */
  serveCopy(name: string): void;
  serveRepository(): void;
}

/** @example using published = publishedHost(dir, { bundles: [{ name: 'dns-edge' }] }); */
export function publishedHost(dir: TempDir, options: TestHostOptions = {}): PublishedHost {
  const clock = fakeClock({ mode: 'skip' });
  const repository = sampleRepository(dir, { clock });
  let directory = repository.directory;
  const open = () => openRepositorySource(pathToFileURL(directory).href, { clock, version: 'test' });
  const host = testHost({
    nowMs: clock.nowMs(),
    ...options,
    bootstrapRoot: fs.readFileSync(repository.rootPath),
    source: () => ({
      location: repository.url,
      fetch: (path, fetchOptions) => open().fetch(path, fetchOptions),
      stream: (path, streamOptions) => open().stream(path, streamOptions),
      close: async () => undefined,
    }),
  });
  return {
    repository,
    host,
    clock,
    keepCopy: (name) => fs.cpSync(repository.directory, dir.join(name), { recursive: true }),
    serveCopy: (name) => {
      directory = dir.join(name);
    },
    serveRepository: () => {
      directory = repository.directory;
    },
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}
