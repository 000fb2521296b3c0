export { Agent, Client, type Dispatcher } from 'undici';
