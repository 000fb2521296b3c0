// The configuration file of a real supervisord as Debian's, without root, in one directory. Starts nothing.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SupervisordConfig {
  readonly file: string;
  readonly socket: string;
}

/** @returns the paths of configuration and socket in a directory; writes nothing */
export function supervisordPlaces(directory: string): SupervisordConfig {
  return { file: join(directory, 'supervisord.conf'), socket: join(directory, 'supervisor.sock') };
}

/** @param programs the sections `[program:NAME]` */
export function writeSupervisordConfig(directory: string, programs: string): SupervisordConfig {
  const places = supervisordPlaces(directory);
  writeFileSync(
    places.file,
    `[supervisord]
nodaemon=true
logfile=${directory}/supervisord.log
pidfile=${directory}/supervisord.pid
childlogdir=${directory}
[unix_http_server]
file=${places.socket}
chmod=0700
[supervisorctl]
serverurl=unix://${places.socket}
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
${programs}
`,
  );
  return places;
}
