// What of undici sends a request: its index loads fetch, WebSockets, caches and mocks too, three times as much.
import connect from 'undici/lib/api/api-connect.js';
import request from 'undici/lib/api/api-request.js';
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';
import Client from 'undici/lib/dispatcher/client.js';
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';

// As its index does with each of its calls.
Object.assign(Dispatcher.prototype, { connect, request });

export { Agent, buildConnector, Client };
