//! Keys of the transport. The class names are Java's; there is no Netty here.

crate::config! {
    /// Keys of the listening side.
    pub struct NettyServerConfig {
        /// Address to listen on.
        "bindAddress" bind_address: String = "0.0.0.0".into() => "0.0.0.0", fixed;
        /// Port to listen on; 0 lets the system choose.
        "listenPort" listen_port: u16 = 0 => "9876 (name server), 10911 (broker)", fixed, important;
        /// Threads that serve connections; the default of the process is the number of processors.
        "serverWorkerThreads" server_worker_threads: u32 = 8, ignored;
        /// Threads for public requests. Requests are not tied to threads here.
        "serverCallbackExecutorThreads" server_callback_executor_threads: u32 = 0, ignored;
        /// Threads that poll sockets. The runtime has its own.
        "serverSelectorThreads" server_selector_threads: u32 = 3, ignored;
        /// Most one-way requests of the server itself on their way at once.
        "serverOnewaySemaphoreValue" server_oneway_semaphore_value: u32 = 256, fixed;
        /// Most requests of the server itself waiting for an answer at once.
        "serverAsyncSemaphoreValue" server_async_semaphore_value: u32 = 64, fixed;
        /// Seconds without a byte in either direction after which a connection is closed.
        "serverChannelMaxIdleTimeSeconds" server_channel_max_idle_time_seconds: u32 = 120, fixed;
        /// Send buffer of a socket in bytes; 0 leaves it to the system.
        "serverSocketSndBufSize" server_socket_snd_buf_size: u32 = 0, fixed;
        /// Receive buffer of a socket in bytes; 0 leaves it to the system.
        "serverSocketRcvBufSize" server_socket_rcv_buf_size: u32 = 0, fixed;
        /// Bytes of waiting answers above which a connection is not read; 0 for the built-in limit.
        "writeBufferHighWaterMark" write_buffer_high_water_mark: u32 = 0, fixed;
        /// Bytes of waiting answers below which it is read again; 0 for the built-in limit.
        "writeBufferLowWaterMark" write_buffer_low_water_mark: u32 = 0, fixed;
        /// Connections that may wait to be accepted.
        "serverSocketBacklog" server_socket_backlog: u32 = 1024, fixed;
        /// Handlers on threads of their own.
        "serverNettyWorkerGroupEnable" server_netty_worker_group_enable: bool = true, ignored;
        /// Pooled buffers.
        "serverPooledByteBufAllocatorEnable" server_pooled_byte_buf_allocator_enable: bool = true, ignored;
        /// Send GO_AWAY to clients that understand it before the stop and wait for them to leave.
        "enableShutdownGracefully" enable_shutdown_gracefully: bool = false, live;
        /// Most seconds of that wait.
        "shutdownWaitTimeSeconds" shutdown_wait_time_seconds: u32 = 30, live;
        /// Linux epoll. The runtime always uses it.
        "useEpollNativeSelector" use_epoll_native_selector: bool = false, ignored;
    }
}

crate::config! {
    /// Keys of the calling side: a broker to its name servers, a name server to its brokers.
    pub struct NettyClientConfig {
        /// Milliseconds to wait for a connection.
        "connectTimeoutMillis" connect_timeout_millis: u32 = 3000, fixed;
        /// Seconds without a byte after which a connection is closed.
        "clientChannelMaxIdleTimeSeconds" client_channel_max_idle_time_seconds: u32 = 120, fixed;
        /// Close a connection whose request timed out.
        "clientCloseSocketIfTimeout" client_close_socket_if_timeout: bool = true, fixed;
        /// Open a new connection when the peer says GO_AWAY.
        "enableReconnectForGoAway" enable_reconnect_for_go_away: bool = true, fixed;
        /// Most one-way requests on their way at once.
        "clientOnewaySemaphoreValue" client_oneway_semaphore_value: u32 = 65535, fixed;
        /// Most requests waiting for an answer at once.
        "clientAsyncSemaphoreValue" client_async_semaphore_value: u32 = 65535, fixed;
        /// Send buffer of a socket in bytes; 0 leaves it to the system.
        "clientSocketSndBufSize" client_socket_snd_buf_size: u32 = 0, fixed;
        /// Receive buffer of a socket in bytes; 0 leaves it to the system.
        "clientSocketRcvBufSize" client_socket_rcv_buf_size: u32 = 0, fixed;
        /// Speak TLS to name servers and brokers. Also switched on by `tls.enable` and by the server mode `enforcing`.
        "useTLS" use_tls: bool = false, fixed;
        /// Threads of the calling side. The runtime has its own.
        "clientWorkerThreads" client_worker_threads: u32 = 4, ignored;
        /// Threads for answers. The runtime has its own.
        "clientCallbackExecutorThreads" client_callback_executor_threads: u32 = crate::home::cpus() => "processors", ignored;
        /// Pooled buffers.
        "clientPooledByteBufAllocatorEnable" client_pooled_byte_buf_allocator_enable: bool = false, ignored;
        /// Nothing reads it in Java either.
        "channelNotActiveInterval" channel_not_active_interval: u64 = 60000, ignored;
        /// Answers on the polling thread.
        "disableCallbackExecutor" disable_callback_executor: bool = false, ignored;
        /// Handlers on the polling thread.
        "disableNettyWorkerGroup" disable_netty_worker_group: bool = false, ignored;
    }
}
