import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  parseUnitList,
  parseUnitState,
  reloadProofText,
} from '../../../../src/workers/protocols/systemd-units.js';

describe('a list of units', () => {
  it('names those that run and those that failed, and leaves out those that were not started', () => {
    const text = [
      'worker@2.service loaded active running Worker 2',
      '  worker@1.service loaded failed failed  Worker 1',
      'worker@3.service loaded inactive dead Worker 3',
      'dev-disk-by\\x2duuid.device loaded active plugged A disk',
      '',
    ];
    assert.deepEqual(parseUnitList(text.join('\n')), [
      'dev-disk-by\\x2duuid.device',
      'worker@1.service',
      'worker@2.service',
    ]);
    assert.deepEqual(parseUnitList('\n'), []);
  });

  it('is undefined if a line is not a unit', () => {
    assert.equal(parseUnitList('* worker@1.service loaded failed failed x'), undefined);
    assert.equal(parseUnitList('Failed to connect to bus'), undefined);
    assert.equal(parseUnitList('worker@1.service'), undefined);
    assert.equal(parseUnitList('worker loaded active running x'), undefined);
    assert.equal(parseUnitList('w%rker.service loaded active running x'), undefined);
  });
});

describe('the state of a unit', () => {
  const shown = (...lines: string[]): ReturnType<typeof parseUnitState> => parseUnitState(lines.join('\n'));

  it('is read property by property, with every command of its reload', () => {
    const state = shown(
      'Type=notify',
      'ExecReload={ path=/usr/sbin/nginx ; argv[]=/usr/sbin/nginx -t -q ; ignore_errors=no ; pid=0 }',
      'ExecReload={ path=/bin/kill ; argv[]=/bin/kill -HUP $MAINPID ; ignore_errors=no ; pid=0 }',
      'LoadState=loaded',
      'ActiveState=active',
      'CanReload=yes',
      'InvocationID=aa11',
    );
    assert.deepEqual(state, {
      load: 'loaded',
      active: 'active',
      canReload: true,
      type: 'notify',
      invocation: 'aa11',
      result: '',
      hasJob: false,
      restarts: 0,
      startLimit: { burst: '', interval: '' },
      reloadCommands: ['/usr/sbin/nginx -t -q', '/bin/kill -HUP $MAINPID'],
    });
  });

  it('is unknown without its load state or its active state', () => {
    assert.equal(shown('LoadState=loaded', 'CanReload=yes'), undefined);
    assert.equal(shown('LoadState=loaded', 'ActiveState='), undefined);
    assert.equal(shown('ActiveState=active'), undefined);
    assert.equal(shown(''), undefined);
  });

  it('shows what a reload proves', () => {
    const proof = (type: string, reload: string): string => {
      const exec = reload === '' ? [] : [`ExecReload={ path=/x ; argv[]=${reload} ; pid=0 }`];
      const state = shown('LoadState=loaded', 'ActiveState=active', 'CanReload=yes', `Type=${type}`, ...exec);
      return state === undefined ? '' : reloadProofText(state);
    };
    assert.match(proof('simple', '/bin/kill -HUP $MAINPID'), /only sends a signal: \/bin\/kill/);
    assert.match(proof('simple', 'kill -HUP $MAINPID'), /only sends a signal/);
    assert.match(proof('forking', '/usr/sbin/nginx -s reload'), /exit code of: \/usr\/sbin\/nginx -s reload/);
    assert.match(proof('simple', '/usr/bin/killer'), /exit code/);
    assert.match(proof('notify-reload', ''), /ready again/);
    assert.match(proof('simple', ''), /names no command/);
  });
});
