// The schema of `process` of a group: which process a worker is. What a schema cannot say is in process-rules.
import type { GroupOf, Key } from './config-keys.js';
import * as key from './config-keys.js';

const processKeys = {
  unit: {
    ...key.matching(
      '^[A-Za-z0-9:_.@{}\\\\-]+\\.[a-z]+$',
      'a unit with its type, as nginx.service or app@{worker}.service',
    ),
    maxLength: 200,
  },
  pidFile: {
    ...key.matching(
      '^/[^\\n\\u0000]*[^/\\n\\u0000]$',
      'an absolute path of a pid file, as /run/named/named.pid',
    ),
    maxLength: 4096,
  },
  listens: {
    ...key.matching(
      '^(/[^\\u0000-\\u001f]+|[^\\s/]+:([0-9]{1,5}|\\{worker\\}))$',
      'HOST:PORT or the path of a unix socket, as 127.0.0.1:9090 or /run/app.sock',
    ),
    maxLength: 300,
  },
  program: {
    ...key.matching(
      '^(/[^\\u0000-\\u001f]+|[^/\\u0000-\\u001f]+)$',
      'a name or an absolute path of a program, as named',
    ),
    maxLength: 4000,
  },
};
/** Which process a worker is. */
export const processKey: Key<'none' | GroupOf<typeof processKeys>> = {
  ...key.object(processKeys),
  type: ['string', 'object'],
  pattern: '^none$',
  minProperties: 1,
  description: 'none, or a group of keys as {unit: nginx.service}',
};

export type ProcessFile = NonNullable<(typeof processKey)['value']>;
