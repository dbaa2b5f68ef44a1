"""Fork server of Spark's Python processes: they start as forks of a process that has imported their modules.

::

    driver (Python) -- starts, holds its input --> server: has imported the modules, has one thread
      JVM                                            |  forks, for each request on its socket
       |  starts it as its Python                    v
       `--> proxy: python -IS ------------------> watcher -- forks --> process: runpy, the module that Spark named
              |  passes arguments, environment,      ^                    ^ reads and writes the files of the proxy
              |  files and signals; ends as it ends  `- kills it if the proxy has died
              `- without a server: exec, and it is the process itself
"""
